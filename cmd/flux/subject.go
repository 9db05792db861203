package main

// parseSubject reads what --for names; namespace is that of an object that none
// is written with.
func parseSubject(text, namespace string) (target, error) {
	r, ok := readObject([]string{text})
	if !ok {
		return target{}, hinted("write it as in --for Kustomization/my-app or --for hr/my-app", "--for %q is not of the form KIND/NAME", text)
	}
	k, err := r.kind()
	return target{kind: k, namespace: r.in(namespace), name: r.name}, err
}
