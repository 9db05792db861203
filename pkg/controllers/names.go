package controllers

// The names of kinds to which code refers. What is true of a kind of Flux is a column of its row, not a comparison.
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
