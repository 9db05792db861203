module github.com/fluxkit/flux/test/outside

go 1.26.0

require (
	filippo.io/age v1.3.1
	github.com/johannesboyne/gofakes3 v1.2.0
	github.com/prometheus/client_model v0.6.2
	github.com/prometheus/common v0.67.5
	go.yaml.in/yaml/v3 v3.0.4
)

require (
	filippo.io/hpke v0.4.0 // indirect
	github.com/kr/pretty v0.3.1 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ryszard/goskiplist v0.0.0-20150312221310-2dfbae5fcf46 // indirect
	go.shabbyrobe.org/gocovmerge v0.0.0-20230507111327-fa4f82cfbf4d // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/tools v0.39.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
