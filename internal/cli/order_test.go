package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestRulesInTheOrderGiven mixes the three flags: the report's rules come in
// the order of the command line.
func TestRulesInTheOrderGiven(t *testing.T) {
	const log = "192.0.2.1 - - [02/Mar/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n"
	given := []string{"hot 5/1s", "limit 5/1s", "ban 4/10m:10m", "hot client:3/1s", "limit 9/1s"}
	args := []string{"replay", "--json"}
	for _, rule := range given {
		kind, text, _ := strings.Cut(rule, " ")
		args = append(args, "--"+kind, text)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append(args, "-"), strings.NewReader(log), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var report struct {
		Rules []struct{ Kind, Name string }
	}
	must.Do(t, json.Unmarshal(stdout.Bytes(), &report))
	var got []string
	for _, r := range report.Rules {
		got = append(got, r.Kind+" "+r.Name)
	}
	if !slices.Equal(got, given) {
		t.Errorf("rules %q, want %q", got, given)
	}
}
