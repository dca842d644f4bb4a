package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// The tables in docs/server.md are generated from the program. To write them
// again: LATELY_UPDATE=1 go test -run TestServerReference ./internal/cli
func TestServerReference(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "server.md")
	text := must.Get(os.ReadFile(page))(t)
	dir := t.TempDir()
	s := serve(t, "--rules", filepath.Join("..", "..", "examples", "rules.yaml"), "--deny-file", filepath.Join(dir, "deny"), "--follow", filepath.Join(dir, "access.log"))
	want := string(text)
	for name, table := range map[string]string{
		"commands": commandTable(t, s.resp), "routes": routeTable(t, s.http),
		"metrics": metricTable(t, s.http),
	} {
		before, after, ok := strings.Cut(want, "<!-- "+name+" -->\n")
		_, after, ok2 := strings.Cut(after, "<!-- end -->")
		if !ok || !ok2 || strings.Count(table, "\n") < 10 {
			t.Fatalf("no place for the table of %s:\n%s", name, table)
		}
		want = before + "<!-- " + name + " -->\n" + table + "<!-- end -->" + after
	}
	if want == string(text) {
		return
	}
	if os.Getenv("LATELY_UPDATE") == "" {
		t.Fatal("docs/server.md differs from the program: run LATELY_UPDATE=1 go test -run TestServerReference ./internal/cli")
	}
	must.Do(t, os.WriteFile(page, []byte(want), 0o644))
}

// commandTable returns the commands of the RESP listener, from COMMAND DOCS.
func commandTable(t *testing.T, address string) string {
	conn := must.Get(net.Dial("tcp", address))(t)
	defer conn.Close()
	must.Get(conn.Write(resp.AppendCommand(nil, "COMMAND", "DOCS")))(t)
	docs := must.Get(resptest.NewReader(conn).Next())(t)
	var b strings.Builder
	b.WriteString("| command | role | |\n|---|---|---|\n")
	for i := 1; i < len(docs.Elems); i += 2 {
		about := map[string]string{}
		for j := 1; j < len(docs.Elems[i].Elems); j += 2 {
			about[docs.Elems[i].Elems[j-1].Text] = docs.Elems[i].Elems[j].Text
		}
		row(&b, "`"+about["usage"]+"`", about["role"], about["summary"])
	}
	return b.String()
}

// routeTable returns the routes of the HTTP listener, from its OpenAPI document.
func routeTable(t *testing.T, url string) string {
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	must.Do(t, json.Unmarshal(get(t, url+"/openapi.json"), &document))
	var b strings.Builder
	b.WriteString("| route | |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		summaries := map[string][]string{}
		for method, raw := range document.Paths[path] {
			var about struct{ Summary string }
			if json.Unmarshal(raw, &about) == nil && about.Summary != "" {
				summaries[about.Summary] = append(summaries[about.Summary], strings.ToUpper(method))
			}
		}
		for _, summary := range slices.Sorted(maps.Keys(summaries)) {
			methods := summaries[summary]
			slices.Sort(methods)
			if len(methods) > 4 {
				methods = []string{"any"}
			}
			row(&b, "`"+strings.Join(methods, ", ")+" "+path+"`", summary)
		}
	}
	return b.String()
}

// metricTable returns the metrics with the help that they have.
func metricTable(t *testing.T, url string) string {
	var b strings.Builder
	b.WriteString("| metric | |\n|---|---|\n")
	for line := range strings.Lines(string(get(t, url+"/metrics"))) {
		if name, help, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "# HELP "), " "); ok && strings.HasPrefix(line, "# HELP lately_") {
			row(&b, "`"+name+"`", help)
		}
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(c, "|", `\|`))
	}
	b.WriteString("|\n")
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	answer := must.Get(http.Get(url))(t)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return body
}
