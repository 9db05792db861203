package build

// MarkUnstable marks the values of a build that differ in a second build with
// the same input, such as generated passwords and the checksums that follow from
// them. It reports whether there are any.
func MarkUnstable(result, again *Result) bool {
	other := map[string]Object{}
	for _, o := range again.Objects {
		other[identity(o)] = o
	}
	any := false
	for i := range result.Objects {
		o := &result.Objects[i]
		o.Unstable = [][]string{{}}
		if twin, ok := other[identity(*o)]; ok {
			o.Unstable = Different(o.Object, twin.Object, nil)
		}
		any = any || len(o.Unstable) > 0
	}
	return any
}

func identity(o Object) string {
	return o.GroupVersionKind().GroupKind().String() + "/" + o.GetNamespace() + "/" + o.GetName()
}
