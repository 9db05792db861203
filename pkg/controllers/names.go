package controllers

// The names of the kinds that code refers to. Facts about a Flux kind belong in its catalog
// row, not in comparisons with these names.
const (
	Bucket          = "Bucket"
	GitRepository   = "GitRepository"
	HelmChart       = "HelmChart"
	HelmRelease     = "HelmRelease"
	HelmRepository  = "HelmRepository"
	ImageRepository = "ImageRepository"
	Kustomization   = "Kustomization"
	OCIRepository   = "OCIRepository"

	ConfigMap = "ConfigMap"
	Secret    = "Secret"
)
