package kube

import "strings"

// pruned says which fields of an object to step over: a nil entry drops the
// field, another one leads to the fields below.
type pruned map[string]pruned

// prune makes the tree of dotted paths such as "status.inventory".
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
				break // a field above is dropped already
			}
		}
		if at != nil {
			at[steps[len(steps)-1]] = nil
		}
	}
	return root
}
