package validate

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
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

// envoyErrors returns what is wrong with a configuration of filters and clusters.
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

// The documented snippet for Envoy is of the types that Envoy reads, and keeps their
// rules. (No test runs Envoy itself.)
func TestEnvoySnippet(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## 2. Configure Envoy\n")
	_, text, _ = strings.Cut(text, "\n```yaml\n")
	text, _, ok := strings.Cut(text, "\n```\n")
	if !ok {
		t.Fatal("the page has no snippet for Envoy")
	}
	for _, err := range envoyErrors(t, text) {
		t.Error(err)
	}
	for _, change := range [][2]string{
		{"path_prefix", "pathprefix"}, {"timeout: 0.25s", "timeout: soon"}, {"{exact: referer}", "{}"}, {"type: STATIC", "type: FIXED"},
	} {
		broken := strings.Replace(text, change[0], change[1], 1)
		if broken == text || len(envoyErrors(t, broken)) == 0 {
			t.Errorf("%s instead of %s is not found", change[1], change[0])
		}
	}
}
