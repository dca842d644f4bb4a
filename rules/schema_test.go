package rules

import (
	_ "embed"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/event/crawlers"
	"github.com/lately-go/lately/internal/test/must"
)

// The schema has the keys and the form of their values; other rules, such as unique
// names, only Parse checks.
//
//go:embed schema.json
var schema string

// A node is the part of a JSON Schema that the tests use.
type node struct {
	Ref                  string           `json:"$ref"`
	Required             []string         `json:"required"`
	Properties           map[string]*node `json:"properties"`
	AdditionalProperties json.RawMessage  `json:"additionalProperties"`
	Enum                 []any            `json:"enum"`
	Pattern              string           `json:"pattern"`
	Defs                 map[string]*node `json:"$defs"`
}

func parseSchema(t *testing.T) *node {
	t.Helper()
	var root node
	if err := json.Unmarshal([]byte(schema), &root); err != nil {
		t.Fatalf("the schema is not JSON: %v", err)
	}
	return &root
}

// inStep compares an object of the schema with what the parser accepts there.
func inStep(t *testing.T, what string, n *node, allowed []string) {
	t.Helper()
	if n == nil {
		t.Errorf("the schema has no %s", what)
		return
	}
	var keys, required, properties []string
	for _, key := range allowed {
		name, _, example := strings.Cut(key, ": ")
		keys = append(keys, name)
		if example {
			required = append(required, name)
		}
	}
	for p := range n.Properties {
		properties = append(properties, p)
	}
	for _, list := range [][]string{keys, required, properties, n.Required} {
		slices.Sort(list)
	}
	if !slices.Equal(keys, properties) {
		t.Errorf("%s: the parser accepts %v, the schema %v", what, keys, properties)
	}
	if !slices.Equal(required, n.Required) {
		t.Errorf("%s: the parser requires %v, the schema %v", what, required, n.Required)
	}
	if string(n.AdditionalProperties) != "false" {
		t.Errorf("%s: the schema allows other keys: %s", what, n.AdditionalProperties)
	}
}

// TestSchemaInStep checks that the schema and the parser accept and require the
// same keys, and that every part of the schema is used.
func TestSchemaInStep(t *testing.T) {
	root := parseSchema(t)
	inStep(t, "file", root, fileKeys)
	inStep(t, "client", root.Properties["client"], clientKeys)
	inStep(t, "allow", root.Defs["allow"], allowKeys)
	inStep(t, "source", root.Defs["source"], fieldKeys)
	inStep(t, "counter", root.Defs["counter"], counterKeys)
	inStep(t, "limit", root.Defs["limit"], limitKeys)
	inStep(t, "limitData", root.Defs["limitData"], limitDataKeys)
	inStep(t, "adapt", root.Defs["adapt"], adaptKeys)
	inStep(t, "ban", root.Defs["ban"], banKeys)
	inStep(t, "banRule", root.Defs["banRule"], banRuleKeys)
	inStep(t, "hot", root.Defs["hot"], hotKeys)
	for name := range root.Defs {
		if !strings.Contains(schema, `"#/$defs/`+name+`"`) {
			t.Errorf("nothing in the schema refers to %s", name)
		}
	}
}

// TestSchemaChoices checks that every value that the schema lists is one that
// the parser takes, and the other way round for those that it names.
func TestSchemaChoices(t *testing.T) {
	root := parseSchema(t)
	choices := map[string]*node{
		"algorithm": root.Defs["limit"].Properties["algorithm"], "mode": root.Defs["mode"], "on_store_failure": root.Defs["onStoreFailure"],
	}
	for key, n := range choices {
		if len(n.Enum) < 2 {
			t.Errorf("%s has the choices %v in the schema", key, n.Enum)
		}
		for _, v := range n.Enum {
			text := "1 per 1s"
			if v == "in-flight" {
				text = "1 at once for 1s"
			}
			if _, err := Parse("r", []byte(oneLimit("name: x", "key: client", "limit: "+text, key+": "+v.(string)))); err != nil {
				t.Errorf("the schema has a choice that the parser refuses: %v", err)
			}
		}
		_, err := Parse("r", []byte(oneLimit("name: x", "key: client", "limit: 1 per 1s", key+": zzz")))
		var words []string
		for _, v := range n.Enum {
			words = append(words, v.(string))
		}
		_, allowed, _ := strings.Cut(err.Error(), "must be ")
		if got := strings.FieldsFunc(strings.ReplaceAll(allowed, " or ", ", "), func(r rune) bool { return r == ',' || r == ' ' }); !slices.Equal(got, words) {
			t.Errorf("%s: the parser allows %v, the schema %v", key, got, words)
		}
	}
}

// TestSchemaCrawlers compares the operators of crawlers.
func TestSchemaCrawlers(t *testing.T) {
	var names []string
	for _, v := range parseSchema(t).Defs["crawler"].Enum {
		names = append(names, v.(string))
	}
	if !slices.Equal(names, crawlers.Operators()) {
		t.Errorf("the parser takes %v, the schema %v", crawlers.Operators(), names)
	}
}

// TestReference checks that the example in docs/rules.md is a correct file with every key, and that the page explains each.
func TestReference(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/rules.md"))(t)
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, text, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/rules.md has no example")
	}
	f, err := Parse("docs/rules.md", []byte(example))
	if err != nil {
		t.Fatalf("the example has mistakes:\n%v", err)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("the example draws warnings:\n%v", f.Warnings)
	}
	for _, key := range allowKeys { // which need files
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("the page does not explain %s", key)
		}
	}
	for _, key := range slices.Concat(fileKeys, clientKeys, counterKeys, limitKeys, limitDataKeys, adaptKeys, banRuleKeys, hotKeys) {
		name, _, _ := strings.Cut(key, ": ")
		if !strings.Contains(example, name+":") {
			t.Errorf("the example lacks %s", name)
		}
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the page does not explain %s", name)
		}
	}
}
