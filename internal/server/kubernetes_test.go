//go:build unix

package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lately-go/lately/internal/test/must"
)

// A pod is what the tests need of the manifest's StatefulSet.
type pod struct {
	Grace    int `yaml:"terminationGracePeriodSeconds"`
	Security struct {
		User  uint32 `yaml:"runAsUser"`
		Group uint32 `yaml:"fsGroup"`
	} `yaml:"securityContext"`
	Containers []struct {
		Env []struct {
			Name, Value string
		}
		Resources struct{ Limits struct{ Memory string } }
		Ports     []struct {
			Port int `yaml:"containerPort"`
		}
		Startup   probe `yaml:"startupProbe"`
		Liveness  probe `yaml:"livenessProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Lifecycle struct {
			PreStop struct {
				Sleep struct{ Seconds int }
			} `yaml:"preStop"`
		}
		Mounts []struct {
			Name string
			Path string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
}

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// manifest returns the pod of deploy/kubernetes, and the rules file of its ConfigMap.
func manifest(t *testing.T) (p pod, rules string) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", "lately.yaml")))(t)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o struct {
			Kind string
			Data map[string]string
			Spec struct {
				Template struct{ Spec pod }
			}
		}
		err := yaml.Unmarshal([]byte(document), &o)
		switch {
		case o.Kind == "ConfigMap" && err == nil:
			rules = o.Data["rules.yaml"]
		case o.Kind == "StatefulSet" && err == nil:
			p = o.Spec.Template.Spec
		}
	}
	if rules == "" || len(p.Containers) != 1 {
		t.Fatalf("the manifest has no rules or no container: %v", p)
	}
	return p, rules
}

// TestKubernetes runs the image as the pod of the manifest: with its variables, beside
// the variables that Kubernetes sets for the Service, on volumes with the owners, modes
// and links that the kubelet makes.
func TestKubernetes(t *testing.T) {
	p, rules := manifest(t)
	m := built(t)
	if p.Security.User != m.user {
		t.Errorf("the pod runs as the user %d, the image as %d", p.Security.User, m.user)
	}
	group := int(p.Security.Group)
	// fsGroup: root's, writable for the group.
	must.Do(t, errors.Join(os.Chown(m.data(), 0, group), os.Chmod(m.data(), 0o770|os.ModeSetgid)))
	const token = "0123456789abcdef0123456789abcdef"
	for path, text := range map[string]string{"rules/rules.yaml": rules, "tokens/tokens": "admin " + token + " admin\n"} {
		// ConfigMaps and Secrets: a link to a link to the file.
		dir, name := filepath.Join(m.root, "etc", "lately", filepath.Dir(path)), filepath.Base(path)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Join(dir, "..2026"), 0o755), os.Symlink("..2026", filepath.Join(dir, "..data")),
			os.Symlink("..data/"+name, filepath.Join(dir, name)), os.WriteFile(filepath.Join(dir, "..2026", name), []byte(text), 0o440),
			os.Chown(filepath.Join(dir, "..2026", name), 0, group)))
	}
	c := p.Containers[0]
	env := []string{
		"KUBERNETES_SERVICE_HOST=10.96.0.1", "LATELY_SERVICE_HOST=10.96.12.7", "LATELY_SERVICE_PORT=7379", "LATELY_SERVICE_PORT_RESP=7379",
		"LATELY_SERVICE_PORT_HTTP=7380", "LATELY_PORT=tcp://10.96.12.7:7379", "LATELY_PORT_7379_TCP=tcp://10.96.12.7:7379",
		"LATELY_PORT_7379_TCP_PROTO=tcp", "LATELY_PORT_7379_TCP_PORT=7379", "LATELY_PORT_7379_TCP_ADDR=10.96.12.7",
	}
	for _, v := range c.Env {
		env = append(env, v.Name+"="+strings.ReplaceAll(v.Value, "$(NAMESPACE)", "shop"))
	}
	started := m.start(t, env...)
	for _, x := range []struct {
		probe
		host string
	}{{c.Startup, ""}, {c.Liveness, ""}, {c.Readiness, ""}, {c.Liveness, "lately.shop.svc:7380"}} {
		r := must.Get(http.NewRequest("GET", "http://"+started.http+x.HTTPGet.Path, nil))(t)
		r.Host = x.host
		answer := must.Get(http.DefaultClient.Do(r))(t)
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the probe %s of %q is answered %s: %s", x.HTTPGet.Path, x.host, answer.Status, body)
		}
	}
	if code, body := started.status(t, token); code != http.StatusOK || !strings.Contains(body, `"role":"admin"`) || !strings.Contains(body, "/etc/lately/rules/rules.yaml") {
		t.Errorf("the status is %d %s", code, body)
	}
	if code, _ := started.status(t, ""); code != http.StatusUnauthorized {
		t.Errorf("without a token the answer is %d", code)
	}
	log := started.stop(t)
	if strings.Contains(log, "token file created") || !strings.Contains(log, `"level":"INFO"`) {
		t.Errorf("the log is\n%s", log)
	}
	if found, err := filepath.Glob(filepath.Join(m.data(), "state")); err != nil || len(found) == 0 {
		t.Errorf("no snapshot: %v", err)
	}
}

// TestKubernetesSettings has the settings of the pod that must fit each other.
func TestKubernetesSettings(t *testing.T) {
	p, rules := manifest(t)
	c := p.Containers[0]
	var config Config
	env := variables(dockerfile(t))
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "LATELY_") {
			env = append(env, v.Name+"="+strings.ReplaceAll(v.Value, "$(NAMESPACE)", "shop"))
		}
	}
	must.Do(t, errors.Join(ReadEnvironment(&config, env), config.Validate()))
	mounted := func(path string) bool {
		for _, m := range c.Mounts {
			if m.Path == path {
				return true
			}
		}
		return false
	}
	if !mounted(config.Data) || !mounted(filepath.Dir(config.RulesFiles[0])) || !mounted(filepath.Dir(config.TokenFile)) {
		t.Errorf("%s, %s and %s are not all mounted: %v", config.Data, config.RulesFiles, config.TokenFile, c.Mounts)
	}
	for i, address := range []string{config.RESP, config.HTTP} {
		if _, port, _ := strings.Cut(address, ":"); port != strconv.Itoa(c.Ports[i].Port) {
			t.Errorf("the container's port %d is %d, the server's address %s", i, c.Ports[i].Port, address)
		}
	}
	least := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second + config.ShutdownTimeout + 10*time.Second
	if grace := time.Duration(p.Grace) * time.Second; c.Lifecycle.PreStop.Sleep.Seconds == 0 || grace < least {
		t.Errorf("the pod is killed after %v; preStop, drain and a snapshot take up to %v", grace, least)
	}
	// Resident memory is up to 150 MiB above --memory; see docs/operations.md.
	var limit int64
	if err := one(&limit, size)([]string{c.Resources.Limits.Memory + "B"}); err != nil || limit < config.Memory+150*mib || config.Memory == 0 {
		t.Errorf("the memory limit is %s; the server has %d MiB and 150", c.Resources.Limits.Memory, config.Memory/mib)
	}
	if !slices.Contains(config.Hosts, "lately.shop.svc.cluster.local") {
		t.Errorf("the hosts are %q", config.Hosts)
	}
	if !regexp.MustCompile(`(?m)^  - name: `).MatchString(rules) {
		t.Errorf("the rules are %q", rules)
	}
}
