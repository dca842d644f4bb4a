package validate

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// The schema is in the tests of kubectl, of the version of the types.
const (
	schemaModule = "k8s.io/kubectl@v0.37.2"
	schemaSum    = "h1:AGGIhrGSsXtrL6BZWf7Hp2K9yB+2qdx7wovsOP1MiCg="
)

// A kind is a kind of object that the manifests may have.
type kind struct {
	definition string // in the schema
	value      any
}

func kinds() map[string]kind {
	return map[string]kind{
		"v1 ConfigMap":                       {"io.k8s.api.core.v1.ConfigMap", new(core.ConfigMap)},
		"v1 Service":                         {"io.k8s.api.core.v1.Service", new(core.Service)},
		"apps/v1 StatefulSet":                {"io.k8s.api.apps.v1.StatefulSet", new(apps.StatefulSet)},
		"networking.k8s.io/v1 NetworkPolicy": {"io.k8s.api.networking.v1.NetworkPolicy", new(networking.NetworkPolicy)},
	}
}

// schema returns the compiler of Kubernetes' OpenAPI document, and its address.
func schema(t *testing.T) (c *jsonschema.Compiler, url string) {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", schemaModule).Output()
	var module struct{ Dir, Sum string }
	if json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("SKIP the schema of Kubernetes: %s cannot be downloaded (%v)", schemaModule, err)
	}
	if module.Sum != schemaSum {
		t.Fatalf("%s has the sum %s; want %s", schemaModule, module.Sum, schemaSum)
	}
	f, err := os.Open(filepath.Join(module.Dir, "testdata", "openapi", "swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	document, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	// OpenAPI 2 has no type for a number or a string.
	definitions := document.(map[string]any)["definitions"].(map[string]any)
	for _, name := range []string{"io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity"} {
		definitions[name].(map[string]any)["type"] = []any{"string", "number"}
	}
	c = jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4)
	if err := c.AddResource("kubernetes.json", document); err != nil {
		t.Fatal(err)
	}
	return c, "kubernetes.json#/definitions/"
}

// objects returns the objects of a manifest, decoded strictly: unknown fields and repeated keys are errors.
func objects(text string) (list []any, err error) {
	for document := range strings.SplitSeq(text, "\n---\n") {
		var m meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			return nil, err
		}
		k, ok := kinds()[m.APIVersion+" "+m.Kind]
		if !ok {
			return nil, errors.New("unknown kind " + m.APIVersion + " " + m.Kind)
		}
		b, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return nil, err
		}
		unknown, err := kjson.UnmarshalStrict(b, k.value)
		if err := errors.Join(append(unknown, err)...); err != nil {
			return nil, err
		}
		list = append(list, k.value)
	}
	return list, nil
}

// check returns the errors in a manifest.
func check(c *jsonschema.Compiler, url, text string) error {
	if _, err := objects(text); err != nil {
		return err
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var m meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			return err
		}
		s, err := c.Compile(url + kinds()[m.APIVersion+" "+m.Kind].definition)
		if err != nil {
			return err
		}
		b, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		if err != nil {
			return err
		}
		if err := s.Validate(value); err != nil {
			return err
		}
	}
	return nil
}

func manifest(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "lately.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSchema holds the manifests against the types and the schema. Wrong ones are found.
func TestSchema(t *testing.T) {
	c, url := schema(t)
	text := manifest(t)
	if err := check(c, url, text); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][2]string{
		{"readOnlyRootFilesystem", "readOnlyRootFileSystem"}, // unknown field
		{"serviceName: lately", "serviceName: [lately]"},     // wrong type
		{"  serviceName: lately\n", "  serviceName: lately\n  serviceName: b\n"},
		{"        - name: lately\n          image", "        - image"}, // required
		{"name: http, port: 7380,", "name: http,"},                     // required
		{"replicas: 1", "replicas: one"},
		{"periodSeconds: 5", "periodSeconds: 5s"},
	} {
		broken := strings.Replace(text, wrong[0], wrong[1], 1)
		if broken == text || check(c, url, broken) == nil {
			t.Errorf("%q in place of %q is not found", wrong[1], wrong[0])
		}
	}
}

// TestObjectsFit checks the names by which objects refer to each other, which no schema contains.
func TestObjectsFit(t *testing.T) {
	list, err := objects(manifest(t))
	if err != nil {
		t.Fatal(err)
	}
	var rules *core.ConfigMap
	var service *core.Service
	var set *apps.StatefulSet
	var policy *networking.NetworkPolicy
	for _, o := range list {
		switch o := o.(type) {
		case *core.ConfigMap:
			rules = o
		case *core.Service:
			service = o
		case *apps.StatefulSet:
			set = o
		case *networking.NetworkPolicy:
			policy = o
		}
	}
	if rules == nil || service == nil || set == nil || policy == nil {
		t.Fatalf("the objects are %v", list)
	}
	pod := set.Spec.Template
	for who, selector := range map[string]map[string]string{
		"Service": service.Spec.Selector, "StatefulSet": set.Spec.Selector.MatchLabels, "NetworkPolicy": policy.Spec.PodSelector.MatchLabels,
	} {
		for name, value := range selector {
			if pod.Labels[name] != value || len(selector) == 0 {
				t.Errorf("the %s selects %v; the pod has %v", who, selector, pod.Labels)
			}
		}
	}
	if set.Spec.ServiceName != service.Name {
		t.Errorf("the StatefulSet is of the service %s", set.Spec.ServiceName)
	}
	container := pod.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range service.Spec.Ports {
		if ports[p.TargetPort.StrVal] != p.Port {
			t.Errorf("the service's port %s is %d; the container's %v", p.Name, p.Port, ports)
		}
	}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if ports[p.Port.StrVal] == 0 {
				t.Errorf("the policy is about the port %v", p.Port)
			}
		}
	}
	for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe == nil || ports[probe.HTTPGet.Port.StrVal] == 0 {
			t.Errorf("a probe is %v", probe)
		}
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.ConfigMap.Name != rules.Name {
			t.Errorf("the volume %s is of the ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
	}
	for _, v := range set.Spec.VolumeClaimTemplates {
		volumes[v.Name] = true
	}
	for _, m := range container.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
	}
	p, s := pod.Spec.SecurityContext, container.SecurityContext
	if !*p.RunAsNonRoot || *p.RunAsUser == 0 || *p.FSGroup == 0 || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the pod may too much: %v, %v", p, s)
	}
}
