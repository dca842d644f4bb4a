package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/geotest"
	"github.com/lately-go/lately/internal/test/must"
)

const geoRules = `version: 1
limits:
  - {name: far, key: client, when: {country: [AT, FR]}, limit: 1 per 1h}
  - {name: network, key: asn, limit: 3 per 1h}
`

// geoFile writes an mmdb file in which 192.0.2.0/24 has a country, and 198.51.100.0/24 has none. The file is replaced as
// programs that download such files do.
func geoFile(t *testing.T, name, country string) {
	t.Helper()
	data := geotest.File(map[string]map[string]any{
		"192.0.2.0/24":    {"country": map[string]any{"iso_code": country}, "autonomous_system_number": uint32(64496)},
		"198.51.100.0/24": {"autonomous_system_number": uint32(64497)},
	})
	must.Do(t, os.WriteFile(name+".new", data, 0o600))
	must.Do(t, os.Rename(name+".new", name))
}

// TestGeo has every command with --geo and without: only with it, events have a country and an asn.
func TestGeo(t *testing.T) {
	t.Chdir(t.TempDir())
	geoFile(t, "geo.mmdb", "AT")
	var log strings.Builder
	for i, client := range []string{"192.0.2.1", "192.0.2.1", "198.51.100.1", "198.51.100.1", "198.51.100.1", "198.51.100.2", "203.0.113.1"} {
		fmt.Fprintf(&log, "%s - - [02/Mar/2026:10:00:%02d +0000] \"GET / HTTP/1.1\" 200 5\n", client, i)
	}
	for name, text := range map[string]string{
		"rules.yaml": geoRules, "access.log": log.String(), "wrong.mmdb": "wrong", "lately.yaml": "geo: geo.mmdb\nrules: rules.yaml\n",
		"rules.test.yaml": `version: 1
tests:
  - name: a country
    events:
      - {at: 0s, event: {client: 192.0.2.1}, repeat: 2 every 1s, expect: allowed}
`,
	} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	const needs = `field country( needs|: it needs) --geo FILE`
	for _, x := range []struct{ args, with, without string }{
		{"replay --rules rules.yaml access.log", `(?s)limit far.* 1 allowed, 1 refused .*limit network.* 5 allowed, 1 refused`, needs},
		{"replay --key asn access.log", `64497 +4`, `field asn needs --geo FILE`},
		{"replay --where country=AT access.log", `7 parsed`, needs},
		{"explain --rules rules.yaml --key 192.0.2.1 access.log", `far`, needs},
		{"suggest --key asn access.log", `asn`, `field asn needs --geo FILE`},
		{"diff rules.yaml rules.yaml access.log", `no difference\n$`, needs},
		{"test rules.yaml", `must be allowed, was refused by far`, `warning: rules.yaml:3:12: rule "far": ` + needs + `.*; without it, events of tests have it only if they name it`},
		{"validate rules.yaml", `far: `, `rules.yaml:3:12: rule "far": ` + needs},
		{"validate --config lately.yaml", `far: `, `far: `},
	} {
		for flag, want := range map[string]string{"--geo geo.mmdb": x.with, "": x.without, "--geo wrong.mmdb": `geo: wrong.mmdb: .*: must be a whole file in the mmdb format`} {
			var out bytes.Buffer
			run(t.Context(), append(strings.Fields(x.args), strings.Fields(flag)...), strings.NewReader(""), &out, &out)
			if !regexp.MustCompile(want).Match(out.Bytes()) {
				t.Errorf("lately %s %s: no %q in\n%s", x.args, flag, want, out.String())
			}
		}
	}
}

// TestServeGeo judges by countries, also after the file was replaced.
func TestServeGeo(t *testing.T) {
	dir := t.TempDir()
	db, rules := filepath.Join(dir, "geo.mmdb"), writeRules(t, geoRules[:strings.Index(geoRules, "  - {name: network")])
	geoFile(t, db, "AT")
	code, answer := mistaken(t, []string{"serve", "--rules", rules})
	if code != 2 || !strings.Contains(answer, `rule "far": field country: it needs --geo FILE`) {
		t.Errorf("without --geo: exit code %d, %s", code, answer)
	}
	s := serve(t, "--rules", rules, "--geo", db, "--rules-poll", "10ms")
	c, clients := s.dial(), 0
	second := func(network string) string { // the second decision about a client that is new to the server
		clients++
		c.say("CHECK", "client", fmt.Sprint(network, clients))
		return c.say("CHECK", "client", fmt.Sprint(network, clients))[:2]
	}
	if far, other := second("192.0.2."), second("203.0.113."); far != "[0" || other != "[1" {
		t.Errorf("an address of the country %s, another one %s", far, other)
	}
	geoFile(t, db, "CH")
	if !eventually(func() bool { return strings.Contains(s.log.String(), "geo: read again") }) || second("192.0.2.") != "[1" {
		t.Errorf("the file that has changed is not read:\n%s", s.log.String())
	}
}
