package kube

import "strings"

// pruned is a tree of the fields of an object that are not decoded: a nil entry omits the field,
// any other entry applies to its children.
type pruned map[string]pruned

// prune returns the tree of dotted paths such as "status.inventory".
func prune(paths []string) pruned {
	root := pruned{}
	for _, path := range paths {
		at := root
		steps := strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			if _, ok := at[step]; !ok {
				at[step] = pruned{}
			}
			if at = at[step]; at == nil {
				break // a parent is omitted already
			}
		}
		if at != nil {
			at[steps[len(steps)-1]] = nil
		}
	}
	return root
}
