// Package manifests holds what `flux install` puts on a cluster: the namespace,
// the network policies, the roles, the custom resource definitions and the
// Deployments of the controllers.
//
// Two templates of YAML carry it: cluster.yaml for what exists once, and
// controller.yaml for what every controller has. What differs from controller to
// controller stands in one table (catalogue.go). The definitions are generated
// when building and embedded (crds.go). [Render] puts the parts together.
package manifests
