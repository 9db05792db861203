package review_test

type reviewCase struct {
	before, after string
	want          []string
}

func one(kind, version, rest string) string {
	return "apiVersion: " + version + "\nkind: " + kind + "\n" + rest
}

const named = "metadata: {name: a, namespace: web}\n"

func deployment(image, more string) string {
	return one("Deployment", "apps/v1", named+"spec: {replicas: 1, template: {spec: {"+more+"containers: [{name: app, image: '"+image+"'}]}}}\n")
}

func service(spec string) string { return one("Service", "v1", named+"spec: {"+spec+"}\n") }

func flux(kind, version, spec string) string {
	return one(kind, version, named+"spec: {"+spec+"}\n")
}

func configMap(value string) string {
	return one("ConfigMap", "v1", named+"data: {a: '"+value+"'}")
}

func kustomization(spec string) string {
	return flux("Kustomization", "kustomize.toolkit.fluxcd.io/v1", spec)
}

func helmRelease(chart, version string) string {
	return flux("HelmRelease", "helm.toolkit.fluxcd.io/v2", "chart: {spec: {chart: "+chart+", version: '"+version+"'}}")
}

func ociRepository(ref string) string {
	return flux("OCIRepository", "source.toolkit.fluxcd.io/v1", "url: oci://example.com/app, ref: {"+ref+"}")
}

func binding(kind, role, subjects string) string {
	return one(kind, "rbac.authorization.k8s.io/v1", "metadata: {name: a}\nroleRef: {kind: ClusterRole, name: "+role+"}\nsubjects: ["+subjects+"]\n")
}

func role(rule string) string {
	return one("ClusterRole", "rbac.authorization.k8s.io/v1", "metadata: {name: a}\nrules: [{"+rule+"}]\n")
}

var none = []string{}

// cases has each rule with near misses.
var cases = map[string]reviewCase{
	"variable without a value":         {configMap("a"), configMap("${unset}"), []string{"unset-variable: unset"}},
	"variable that had no value":       {configMap("${unset}"), configMap("${unset}-b"), none},
	"variable that has a value now":    {configMap("${unset}"), configMap("a"), none},
	"namespace removed":                {one("Namespace", "v1", "metadata: {name: a}"), "", []string{"namespace-removal", "prune"}},
	"another Namespace removed":        {one("Namespace", "example.com/v1", "metadata: {name: a}"), "", []string{"prune"}},
	"namespace added":                  {"", one("Namespace", "v1", "metadata: {name: a}"), none},
	"crd removed":                      {one("CustomResourceDefinition", "apiextensions.k8s.io/v1", "metadata: {name: a}"), "", []string{"crd-removal", "prune"}},
	"claim removed":                    {one("PersistentVolumeClaim", "v1", named), "", []string{"persistent-volume-claim", "prune"}},
	"volume removed":                   {one("PersistentVolume", "v1", "metadata: {name: a}"), "", []string{"prune"}},
	"stateful set removed":             {one("StatefulSet", "apps/v1", named), "", []string{"stateful-set-removal", "prune"}},
	"deployment removed":               {deployment("a:1", ""), "", []string{"prune"}},
	"load balancer removed":            {service("type: LoadBalancer"), "", []string{"load-balancer-removal", "prune"}},
	"load balancer becomes ClusterIP":  {service("type: LoadBalancer"), service("clusterIP: None"), []string{"load-balancer-removal: spec.type becomes ClusterIP"}},
	"load balancer becomes NodePort":   {service("type: LoadBalancer"), service("type: NodePort"), []string{"load-balancer-removal: spec.type becomes NodePort"}},
	"load balancer gets a port":        {service("type: LoadBalancer"), service("type: LoadBalancer, ports: [{port: 80}]"), none},
	"service becomes a load balancer":  {service("type: ClusterIP"), service("type: LoadBalancer"), none},
	"service removed":                  {service("type: ClusterIP"), "", []string{"prune"}},
	"selector changes":                 {one("Deployment", "apps/v1", named+"spec: {selector: {matchLabels: {a: b}}}"), one("Deployment", "apps/v1", named+"spec: {selector: {matchLabels: {a: c}}}"), []string{"immutable: spec.selector"}},
	"selector of a service changes":    {service("selector: {a: b}"), service("selector: {a: c}"), none},
	"scaled to zero":                   {one("Deployment", "apps/v1", named+"spec: {replicas: 3}"), one("Deployment", "apps/v1", named+"spec: {replicas: 0}"), []string{"scaled-to-zero"}},
	"scaled to zero from the default":  {one("StatefulSet", "apps/v1", named+"spec: {}"), one("StatefulSet", "apps/v1", named+"spec: {replicas: 0}"), []string{"scaled-to-zero"}},
	"scaled to one":                    {one("Deployment", "apps/v1", named+"spec: {replicas: 3}"), one("Deployment", "apps/v1", named+"spec: {replicas: 1}"), none},
	"stays at zero":                    {one("Deployment", "apps/v1", named+"spec: {replicas: 0}"), one("Deployment", "apps/v1", named+"spec: {replicas: 0, paused: true}"), none},
	"created with zero":                {"", one("Deployment", "apps/v1", named+"spec: {replicas: 0}"), none},
	"replicas without a value":         {one("Deployment", "apps/v1", named+"spec: {replicas: 3}"), one("Deployment", "apps/v1", named+"spec: {}"), none},
	"prune on":                         {kustomization("prune: false"), kustomization("prune: true"), []string{"prune-enabled"}},
	"prune on from missing":            {kustomization("path: a"), kustomization("prune: true, path: a"), []string{"prune-enabled"}},
	"prune off":                        {kustomization("prune: true"), kustomization("prune: false"), []string{"prune-disabled"}},
	"prune of another kind":            {flux("Kustomization", "example.com/v1", "prune: true"), flux("Kustomization", "example.com/v1", "prune: false"), none},
	"new Kustomization with prune":     {"", kustomization("prune: true"), none},
	"suspended":                        {kustomization("path: a"), kustomization("path: a, suspend: true"), []string{"suspended"}},
	"suspended source":                 {flux("GitRepository", "source.toolkit.fluxcd.io/v1", "url: a"), flux("GitRepository", "source.toolkit.fluxcd.io/v1", "url: a, suspend: true"), []string{"suspended"}},
	"created suspended":                {"", kustomization("suspend: true"), []string{"suspended"}},
	"resumed":                          {kustomization("suspend: true"), kustomization("suspend: false"), []string{"resumed"}},
	"stays suspended":                  {kustomization("suspend: true"), kustomization("suspend: true, path: b"), none},
	"suspend of a CronJob":             {one("CronJob", "batch/v1", named+"spec: {suspend: false}"), one("CronJob", "batch/v1", named+"spec: {suspend: true}"), none},
	"service account removed":          {kustomization("serviceAccountName: team"), kustomization("path: a"), []string{"service-account-removal: spec.serviceAccountName team is removed"}},
	"service account replaced":         {kustomization("serviceAccountName: team"), kustomization("serviceAccountName: other"), none},
	"service account of a pod removed": {one("Deployment", "apps/v1", named+"spec: {serviceAccountName: a}"), one("Deployment", "apps/v1", named+"spec: {paused: true}"), none},
	"cluster-admin":                    {"", binding("ClusterRoleBinding", "cluster-admin", "{kind: ServiceAccount, name: a, namespace: web}"), []string{"cluster-admin: to ServiceAccount web/a"}},
	"cluster-admin for one more":       {binding("ClusterRoleBinding", "cluster-admin", "{kind: User, name: a}"), binding("ClusterRoleBinding", "cluster-admin", "{kind: User, name: a}, {kind: Group, name: b}"), []string{"cluster-admin: to Group b"}},
	"cluster-admin in a namespace":     {"", binding("RoleBinding", "cluster-admin", "{kind: User, name: a}"), []string{"cluster-admin: to User a"}},
	"cluster-admin removed":            {binding("ClusterRoleBinding", "cluster-admin", "{kind: User, name: a}"), "", []string{"prune"}},
	"view":                             {"", binding("ClusterRoleBinding", "view", "{kind: User, name: cluster-admin}"), none},
	"wildcards":                        {"", role("verbs: ['*'], resources: ['*'], apiGroups: ['*']"), []string{"wildcard-permissions"}},
	"wildcards of one group":           {"", role("verbs: ['*'], resources: ['*'], apiGroups: [apps]"), none},
	"read everything":                  {"", role("verbs: [get], resources: ['*'], apiGroups: ['*']"), none},
	"privileged":                       {"", deployment("a:1", "initContainers: [{name: init, securityContext: {privileged: true}}], "), []string{"privileged: container init"}},
	"not privileged":                   {"", deployment("a:1", "initContainers: [{name: init, securityContext: {privileged: false}}], "), none},
	"stays privileged":                 {deployment("a:1", "initContainers: [{name: init, securityContext: {privileged: true}}], "), deployment("a:1.1", "initContainers: [{name: init, securityContext: {privileged: true}}], "), none},
	"hostPath":                         {deployment("a:1", ""), deployment("a:1", "volumes: [{name: v, hostPath: {path: /var}}], "), []string{"host-path: /var"}},
	"emptyDir":                         {deployment("a:1", ""), deployment("a:1", "volumes: [{name: hostPath, emptyDir: {}}], "), none},
	"hostNetwork":                      {deployment("a:1", ""), deployment("a:1", "hostNetwork: true, "), []string{"host-namespace: hostNetwork"}},
	"hostNetwork off":                  {deployment("a:1", "hostPID: true, "), deployment("a:1", "hostNetwork: false, "), none},
	"major image":                      {deployment("example.com:5000/a:1.9.1", ""), deployment("example.com:5000/a:2.0.0", ""), []string{"major-image-update: example.com:5000/a 1.9.1 → 2.0.0"}},
	"major image with v and digest":    {deployment("a:v1", ""), deployment("a:v2@sha256:00", ""), []string{"major-image-update: a v1 → v2"}},
	"major image with a suffix":        {deployment("postgres:15.3-alpine", ""), deployment("postgres:16.0-alpine", ""), []string{"major-image-update: postgres 15.3-alpine → 16.0-alpine"}},
	"minor image":                      {deployment("a:1.9.1", ""), deployment("a:1.10.0", ""), none},
	"image by date":                    {deployment("a:20240119", ""), deployment("a:20250119", ""), none},
	"image by year":                    {deployment("a:2024.12.1", ""), deployment("a:2025.1.0", ""), none},
	"image by commit":                  {deployment("a:main-1a2b3c", ""), deployment("a:main-2b3c4d", ""), none},
	"another image":                    {deployment("a:1.0.0", ""), deployment("b:2.0.0", ""), none},
	"port without a tag":               {deployment("example.com:5000/a", ""), deployment("example.com:5001/a", ""), none},
	"major chart":                      {helmRelease("app", "1.2.3"), helmRelease("app", "2.0.0"), []string{"major-chart-update: app 1.2.3 → 2.0.0"}},
	"major range":                      {helmRelease("app", ">=1.2.0 <2.0.0"), helmRelease("app", "^2.1"), []string{"major-chart-update: app >=1.2.0 <2.0.0 → ^2.1"}},
	"range with x":                     {helmRelease("app", "6.x"), helmRelease("app", "7.x"), []string{"major-chart-update: app 6.x → 7.x"}},
	"minor chart":                      {helmRelease("app", "1.2.3"), helmRelease("app", "1.3.0"), none},
	"range in the same major":          {helmRelease("app", "1.2.3"), helmRelease("app", "^1.4"), none},
	"upper bound":                      {helmRelease("app", "<2.0.0"), helmRelease("app", "3.0.0"), none},
	"any version":                      {helmRelease("app", "*"), helmRelease("app", "3.0.0"), none},
	"major artifact":                   {ociRepository("tag: 1.2.3"), ociRepository("tag: 2.0.0"), []string{"major-chart-update: oci://example.com/app 1.2.3 → 2.0.0"}},
	"minor artifact":                   {ociRepository("tag: 0.5.0"), ociRepository("tag: 0.6.0"), none},
	"major range of artifacts":         {ociRepository("semver: 1.x, tag: latest"), ociRepository("semver: 2.x, tag: latest"), []string{"major-chart-update: oci://example.com/app 1.x → 2.x"}},
	"artifact by digest":               {ociRepository("tag: 1.2.3"), ociRepository("digest: sha256:00"), none},
	"artifact by commit":               {ociRepository("tag: 1a2b3c4"), ociRepository("tag: 2b3c4d5"), none},
	"another chart":                    {helmRelease("app", "1.2.3"), helmRelease("other", "2.0.0"), none},
}
