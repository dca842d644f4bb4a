package rules

import (
	"fmt"
	"testing"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
)

// TestParseKey compares keys in one text with keys in a rules file.
func TestParseKey(t *testing.T) {
	for text, yaml := range map[string]string{
		"client":                   "client",
		"client/24":                "client/24",
		"client/24,48":             `"client/24,48"`,
		"client/24,48,path":        `["client/24,48", path]`,
		"host, client/24, 48":      `[host, "client/24,48"]`,
		"path,user|client":         `[path, user | client]`,
		"user | client/16,32,host": `["user | client/16,32", host]`,
	} {
		file, err := Parse("rules.yaml", []byte(fmt.Sprintf("version: 1\nlimits: [{name: x, key: %s, limit: 1 per 1s}]", yaml)))
		if err != nil {
			t.Fatalf("%s: %v", yaml, err)
		}
		got, err := rulevalue.ParseKey(match.Fold{}, text)
		if want := file.Limits.Rules()[0].Key; err != nil || !keyvalue.Equal(got, want) {
			t.Errorf("%q is %v with %+v, %v; want %v with %+v", text, got, got.Fold(), err, want, want.Fold())
		}
	}
	for text, want := range map[string]match.Fold{"client": {Off: true}, "path": {Off: true}, "path,client/8": {IPv4: 8, IPv6: 64}} {
		if got, err := rulevalue.ParseKey(match.Fold{Off: true}, text); err != nil || got.Fold() != want {
			t.Errorf("%q has %+v, %v; want %+v", text, got.Fold(), err, want)
		}
	}
	for text, want := range map[string]string{
		"":             "key: empty name: must be the name of a field",
		"a,":           "key: empty name: must be the name of a field",
		"a,a":          `key: field "a" twice: must be given once`,
		"client/33":    `key: client/33: must be a prefix length from 1 to 32, as in client/24 or "client/24,48", where the second is for IPv6`,
		"client/24,0":  `key: client/24,0: must be a prefix length from 1 to 128, as in client/24 or "client/24,48", where the second is for IPv6`,
		"client/24,48": "",
	} {
		if _, err := rulevalue.ParseKey(match.Fold{}, text); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
