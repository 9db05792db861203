// Package apis pins the API modules of Flux 2.3, from which its CRDs are generated.
package apis

import (
	_ "github.com/fluxcd/helm-controller/api/v2"
	_ "github.com/fluxcd/image-automation-controller/api/v1beta1"
	_ "github.com/fluxcd/image-reflector-controller/api/v1beta1"
	_ "github.com/fluxcd/kustomize-controller/api/v1"
	_ "github.com/fluxcd/notification-controller/api/v1"
	_ "github.com/fluxcd/source-controller/api/v1"
)
