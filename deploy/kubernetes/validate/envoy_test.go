package validate

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// validated is a message with the rules of Envoy's own API for its fields.
type validated interface {
	proto.Message
	ValidateAll() error
}

// envoyErrors returns the errors in a configuration of filters and clusters.
func envoyErrors(t *testing.T, text string) (wrong []error) {
	t.Helper()
	var config struct {
		Filters  []json.RawMessage `json:"http_filters"`
		Clusters []json.RawMessage `json:"clusters"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return []error{err}
	}
	if len(config.Filters) != 1 || len(config.Clusters) != 1 {
		t.Fatalf("%d filters and %d clusters, want one of each", len(config.Filters), len(config.Clusters))
	}
	filter := new(hcm.HttpFilter)
	for _, part := range []struct {
		text json.RawMessage
		into validated
	}{{config.Filters[0], filter}, {config.Clusters[0], new(cluster.Cluster)}} {
		if err := protojson.Unmarshal(part.text, part.into); err != nil {
			wrong = append(wrong, err)
		} else if err := part.into.ValidateAll(); err != nil {
			wrong = append(wrong, err)
		}
	}
	if typed := filter.GetTypedConfig(); typed != nil {
		if m, err := typed.UnmarshalNew(); err != nil {
			wrong = append(wrong, err)
		} else if err := m.(validated).ValidateAll(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// logErrors returns the errors in a configuration of one access log.
func logErrors(t *testing.T, text string) (wrong []error) {
	t.Helper()
	var config struct {
		Logs []json.RawMessage `json:"access_log"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil || len(config.Logs) != 1 {
		return []error{fmt.Errorf("%d logs: %w", len(config.Logs), err)}
	}
	log := new(accesslog.AccessLog)
	if err := protojson.Unmarshal(config.Logs[0], log); err != nil {
		return []error{err}
	}
	m, err := log.GetTypedConfig().UnmarshalNew()
	if err != nil {
		return []error{err}
	}
	if err := m.(validated).ValidateAll(); err != nil {
		wrong = append(wrong, err)
	}
	return wrong
}

// snippet returns the first block of YAML in a section of the page about Envoy.
func snippet(t *testing.T, section string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guides/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## "+section+"\n")
	_, text, _ = strings.Cut(text, "\n```yaml\n")
	text, _, ok := strings.Cut(text, "\n```\n")
	if !ok {
		t.Fatalf("the page has no snippet for Envoy under %q", section)
	}
	return text
}

// The documented snippets for Envoy are of the types that Envoy reads, and keep their
// rules. (No test runs Envoy itself.)
func TestEnvoySnippet(t *testing.T) {
	for _, c := range []struct {
		section string
		errors  func(*testing.T, string) []error
		broken  [][2]string
	}{
		{"2. Configure Envoy", envoyErrors, [][2]string{
			{"path_prefix", "pathprefix"}, {"timeout: 0.25s", "timeout: soon"}, {"{exact: referer}", "{}"}, {"type: STATIC", "type: FIXED"},
		}},
		{"Rules about the answer", logErrors, [][2]string{{"path: /var", "file: /var"}, {"path: /var/log/envoy/access.log", `path: ""`}, {"FileAccessLog", "FileLog"}}},
	} {
		text := snippet(t, c.section)
		for _, err := range c.errors(t, text) {
			t.Error(err)
		}
		for _, change := range c.broken {
			broken := strings.Replace(text, change[0], change[1], 1)
			if broken == text || len(c.errors(t, broken)) == 0 {
				t.Errorf("%s instead of %s is not found", change[1], change[0])
			}
		}
	}
}
