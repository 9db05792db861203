module github.com/fluxkit/flux/tools/age-keygen

go 1.26.0

tool filippo.io/age/cmd/age-keygen

require (
	filippo.io/age v1.3.1 // indirect
	filippo.io/hpke v0.4.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
)
