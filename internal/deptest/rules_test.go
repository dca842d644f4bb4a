package deptest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

const modulePath = "github.com/lately-go/lately"

// table says which package may import which: a package of this module to the
// left, what it may import to the right. Names are folders of the module, whose
// root has no code; a name with a dot before its first slash is an outside
// module and stands for all its packages. Every package may import the standard
// library; "std" means that a package imports nothing else.
//
// latelygrpc, latelyprom and latelyredis import a library whose types their users pass
// in and get back. Programs that import none of them download none: the fixture test
// checks it.
//
// A package stands above those it imports. Packages that do not exist yet may
// have a row; packages without a row may not exist.
const table = `
cmd/lately    -> internal/cli
internal/cli  -> internal/intake, internal/geo, internal/eventfield, internal/server, internal/server/access, internal/server/follow, internal/server/eventlist, internal/cli/migrate, internal/server/replaypage, replay, client, api, rules, ratelimit, accesslog, match, internal/fileperm, internal/wait, internal/spelling, github.com/spf13/cobra, github.com/spf13/pflag, charm.land/bubbletea/v2, charm.land/lipgloss/v2, github.com/charmbracelet/x/ansi, github.com/charmbracelet/x/term, golang.org/x/sys, internal/rulevalue, internal/address, internal/limit
cmd/samplelog -> internal/test/accesslogtest
cmd/manpages  -> internal/cli, github.com/spf13/cobra, github.com/spf13/pflag

internal/server         -> internal/refusal, internal/secret, internal/geo, api, internal/server/demo, latelyredis, internal/store, internal/server/loglimit, internal/wait, github.com/redis/rueidis, internal/server/follow, accesslog, latelyhttp, internal/server/enforce, internal/server/engine, internal/server/events, internal/server/listen, internal/server/access, internal/server/respapi, internal/server/httpapi, rules, match, ratelimit, hotkey, window, internal/server/journal, internal/fileperm, internal/server/apierror, internal/server/state, internal/server/counters, internal/server/bans, internal/server/reservations, internal/rulevalue, internal/address, internal/yamlfile, internal/spelling, internal/sentence, internal/eventfield, internal/when
internal/server/respapi -> api, internal/server/engine, internal/server/events, internal/server/listen, internal/server/access, internal/resp, internal/server/loglimit, rules, match, ratelimit, hotkey, window, internal/wait, internal/server/apierror, internal/server/keys, internal/server/hotkeys, internal/server/bans, internal/server/reservations, internal/rulevalue, internal/limit
internal/server/throttle -> ratelimit, window, internal/keytable, internal/limit, internal/snapshot
internal/server/demo    -> internal/server/engine, rules
internal/server/httpapi -> internal/httpfield, internal/middleware, internal/refusal, internal/ratelimitheader, internal/crawlers, api, internal/server/demo, replay, internal/server/follow, internal/server/enforce, internal/server/engine, internal/server/events, internal/server/keptevents, internal/server/listen, internal/server/access, internal/server/console, latelyhttp, latelyprom, rules, match, ratelimit, hotkey, window, github.com/prometheus/client_golang, internal/server/apierror, internal/server/keys, internal/server/hotkeys, internal/server/bans, internal/server/reservations, internal/eventfield, internal/rulevalue, internal/keyvalue
internal/server/engine  -> internal/hashedplans, internal/crawlers, internal/secret, internal/geo, api, latelyredis, internal/server/throttle, internal/server/events, internal/server/history, internal/server/keptevents, internal/server/refused, internal/store, rules, match, ratelimit, hotkey, window, internal/server/journal, internal/snapshot, internal/server/loglimit, internal/spelling, internal/server/apierror, internal/server/keys, internal/server/hotkeys, internal/server/state, internal/keyvalue, internal/server/counters, internal/server/bans, internal/server/scan, internal/intake, internal/server/reservations, internal/eventfield, internal/address, internal/when, internal/batch, internal/sentence
internal/server/listen  -> api, internal/server/engine, internal/server/access, internal/server/loglimit, internal/fileperm
internal/server/apierror -> api, internal/batch, ratelimit
internal/server/keys    -> api, internal/server/apierror, match, internal/address
internal/server/events  -> api
internal/server/history -> api
internal/server/refused -> match, ratelimit, window, internal/keyvalue
internal/server/keptevents -> match, internal/server/eventlist, internal/eventfield
internal/server/hotkeys -> api, internal/server/apierror, internal/server/keys, internal/server/state, internal/server/journal, hotkey, match, window, internal/heap, internal/keyvalue, internal/when
internal/server/counters -> api, internal/server/apierror, internal/server/keys, internal/server/state, latelyredis, rules, match, window, internal/keyvalue, internal/rulevalue, internal/when, internal/sentence, internal/heap
internal/server/bans    -> api, internal/keyvalue, internal/server/apierror, internal/server/history, internal/server/journal, internal/server/keys, internal/server/loglimit, internal/server/scan, internal/server/state, match, ratelimit, internal/address, internal/limit, internal/ban
internal/server/scan    -> api, internal/server/apierror
internal/server/reservations -> internal/server/state, ratelimit, rules, api, internal/secret, internal/server/apierror, internal/server/keptevents, internal/batch, internal/sentence
internal/server/state   -> window
internal/server/access  -> internal/fileperm
internal/server/console -> std
replay         -> api, rules, match, accesslog, latelyhttp, ratelimit, hotkey, window, internal/ring, internal/decompress, github.com/klauspost/compress, internal/spelling, internal/keyvalue, internal/intake, internal/eventfield, internal/when, internal/rulevalue, internal/address, internal/limit, internal/yamlfile, internal/fileperm, github.com/goccy/go-yaml, internal/batch, internal/sentence, internal/heap, internal/ban
internal/server/replaypage     -> internal/server/console, replay

internal/cli/migrate -> rules, accesslog, internal/rulevalue
client      -> api, hotkey, ratelimit, match, window, internal/resp, internal/wait, internal/keyvalue
rules       -> internal/intake, internal/crawlers, match, ratelimit, hotkey, internal/invalid, internal/limit, internal/fileperm, github.com/goccy/go-yaml, internal/keyvalue, internal/when, internal/rulevalue, internal/address, internal/yamlfile, internal/sentence
latelyhttp  -> internal/httpfield, internal/refusal, internal/ratelimitheader, internal/middleware, ratelimit, hotkey, match, window, internal/wait, internal/keyvalue, internal/eventfield, internal/intake, internal/address
latelygrpc  -> latelyhttp, internal/ratelimitheader, internal/middleware, ratelimit, hotkey, match, window, google.golang.org/grpc, google.golang.org/genproto, google.golang.org/protobuf, internal/wait, internal/intake
latelyredis -> internal/secret, window, ratelimit, match, internal/store, internal/limit, internal/ban, internal/keytable, internal/snapshot, internal/wait, internal/resp, github.com/redis/rueidis, internal/keyvalue
latelyprom  -> ratelimit, hotkey, match, window, github.com/prometheus/client_golang

internal/httpfield            -> internal/middleware, internal/intake, internal/eventfield, match
internal/refusal              -> internal/middleware, internal/ratelimitheader, ratelimit
internal/middleware           -> internal/hashedplans, internal/ratelimitheader, ratelimit, match, internal/intake
internal/ratelimitheader      -> ratelimit, internal/limit
internal/store/storetest      -> internal/store, internal/limit, internal/test/randtest, internal/test/windowtest, ratelimit, match, window, internal/keyvalue, internal/ban
ratelimit           -> match, window, internal/ban, internal/invalid, internal/store, internal/limit, internal/ring, internal/keytable, internal/snapshot, internal/sketch, internal/wait, internal/spelling, internal/keyvalue, internal/when, internal/intake, internal/address, internal/batch
hotkey              -> match, window, internal/invalid, internal/limit, internal/ring, internal/keytable, internal/snapshot, internal/sketch, internal/keyvalue, internal/when, internal/heap

internal/server/follow -> internal/heap, api, accesslog, match, internal/decompress, internal/server/eventlist, internal/eventfield, internal/address
internal/server/eventlist -> match

accesslog               -> match, internal/ring, internal/spelling, internal/regex, internal/eventfield, internal/address
sampled                 -> window
internal/test/accesslogtest -> std
internal/crawlers -> match, internal/address
internal/geo -> rules, internal/keyvalue, match, internal/fileperm, github.com/oschwald/maxminddb-golang/v2, internal/eventfield, internal/address, internal/when
internal/test/geotest -> std
internal/test/dnstest -> std
internal/decompress -> github.com/klauspost/compress
internal/test/must -> std
internal/test/randtest -> std
internal/test/windowtest -> internal/limit
internal/test/journaltest -> std
internal/test/netnstest -> golang.org/x/sys
internal/test/browsertest -> std
internal/test/freeport -> std
window                  -> internal/ring, internal/keytable, internal/snapshot, internal/heap

match               -> internal/address
api                 -> std
internal/ban        -> internal/invalid, internal/keytable, internal/limit, internal/snapshot
internal/batch      -> match
internal/limit      -> internal/ring, internal/keytable, internal/snapshot
internal/keyvalue -> match, internal/address
internal/intake -> internal/keyvalue, match, internal/eventfield
internal/hashedplans -> ratelimit
internal/invalid -> std
internal/eventfield -> match
internal/when -> match, internal/address, internal/eventfield, internal/keyvalue
internal/sentence -> match, ratelimit, hotkey, internal/keyvalue, internal/rulevalue, internal/when
internal/yamlfile -> internal/rulevalue, internal/spelling, github.com/goccy/go-yaml
internal/rulevalue -> match, ratelimit, internal/limit, internal/intake, internal/spelling, internal/eventfield
internal/address    -> std
internal/heap       -> std
internal/secret     -> std
internal/ring       -> std
internal/regex    -> std
internal/store      -> internal/limit, internal/ban
internal/keytable   -> internal/snapshot
internal/snapshot   -> std
internal/sketch     -> internal/ring, internal/keytable
internal/resp       -> std
internal/test/resptest -> std
internal/test/adaptertest -> latelyhttp, match, ratelimit
internal/test/storm      -> golang.org/x/sys, api, client, internal/resp, internal/test/redistest
internal/test/redistest  -> internal/test/freeport, github.com/redis/rueidis
internal/fileperm   -> std
internal/server/journal    -> internal/fileperm
internal/server/loglimit   -> std
internal/spelling    -> std
internal/wait       -> std
internal/server/enforce    -> internal/heap, api, match, ratelimit, internal/fileperm, internal/server/loglimit, internal/wait, internal/keyvalue, internal/address
internal/deptest    -> std
`

// testTable says which outside modules tests may import, next to any package
// of this module that the compiler lets them.
const testTable = `
tests -> go.uber.org/goleak, github.com/rogpeppe/go-internal, github.com/klauspost/compress, github.com/goccy/go-yaml
tests -> google.golang.org/grpc, google.golang.org/genproto, google.golang.org/protobuf, github.com/prometheus/client_golang
tests -> github.com/redis/rueidis, github.com/anishathalye/porcupine, charm.land/bubbletea/v2, charm.land/lipgloss/v2
`

// never lists packages of the standard library that no code here imports, with
// the reason.
var never = map[string]string{
	"C":              "the binary is static and builds without a C compiler",
	"expvar":         "it registers a handler on the default mux when imported",
	"math/rand":      "math/rand/v2 is its successor",
	"net/http/pprof": "it registers handlers on the default mux when imported",
	"plugin":         "it loads code that nobody reviewed",
}

// Rules maps a package to what it may import.
type rules map[string][]string

// parseRules reads a table. A package may have several rows. It is an error
// when a row is not of the form "who -> whom", or when the right side names a
// package of this module that has no row.
func parseRules(text string) (rules, error) {
	r := rules{}
	for row := range strings.Lines(text) {
		if strings.TrimSpace(row) == "" {
			continue
		}
		left, right, ok := strings.Cut(row, "->")
		who := strings.TrimSpace(left)
		if !ok || who == "" {
			return nil, fmt.Errorf("row %q: want who -> whom, whom", row)
		}
		for name := range strings.SplitSeq(right, ",") {
			r[who] = append(r[who], strings.TrimSpace(name))
		}
	}
	for who, may := range r {
		for _, name := range may {
			if name != "std" && !outside(name) && r[name] == nil {
				return nil, fmt.Errorf("%s -> %s: %s has no row of its own", who, name, name)
			}
		}
	}
	return r, nil
}

// outside tells whether an import path or a name of the table is of another
// module: the paths of the standard library have no dot in the first element.
func outside(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

// folderOf returns the table's name of a package of this module.
func folderOf(path string) (string, bool) {
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}

// allows tells whether a package may import a path.
func (r rules) allows(who, path string) bool {
	if folder, ok := folderOf(path); ok {
		return slices.Contains(r[who], folder)
	}
	if !outside(path) {
		return never[path] == ""
	}
	return slices.ContainsFunc(r[who], func(module string) bool {
		return path == module || strings.HasPrefix(path, module+"/")
	})
}

// check returns a sentence for each import that is not drawn, and for each
// package that is not in the table.
func (r rules) check(files []source) []string {
	var wrong []string
	unknown := map[string]bool{}
	for _, f := range files {
		if f.test {
			continue
		}
		if r[f.folder] == nil {
			if !unknown[f.folder] {
				wrong = append(wrong, fmt.Sprintf("%s: package %s is not in the table of internal/deptest/rules_test.go", f.name, f.folder))
			}
			unknown[f.folder] = true
			continue
		}
		for _, path := range f.imports {
			if !r.allows(f.folder, path) {
				wrong = append(wrong, fmt.Sprintf("%s: %s may not import %s%s", f.name, f.folder, path, because(path)))
			}
		}
	}
	return wrong
}

// checkTests is check for test files: outside modules and never only.
func (r rules) checkTests(files []source) []string {
	var wrong []string
	for _, f := range files {
		for _, path := range f.imports {
			if _, ours := folderOf(path); f.test && !ours && !r.allows("tests", path) {
				wrong = append(wrong, fmt.Sprintf("%s: tests may not import %s%s", f.name, path, because(path)))
			}
		}
	}
	return wrong
}

func because(path string) string {
	if reason := never[path]; reason != "" {
		return ": " + reason
	}
	return ""
}

func mustParse(t *testing.T, text string) rules {
	t.Helper()
	r := must.Get(parseRules(text))(t)
	return r
}

func TestImportsFollowTheTable(t *testing.T) {
	files := loadModule(t)
	for _, sentence := range mustParse(t, table).check(files) {
		t.Error(sentence)
	}
	for _, sentence := range mustParse(t, testTable).checkTests(files) {
		t.Error(sentence)
	}
}

// The checker must find what is planted, and nothing else.
func TestCheckerFindsPlantedViolations(t *testing.T) {
	files := mustLoad(t, sources{
		"match/match.go":            `package match; import "strings"`,
		"match/match_test.go":       `package match; import "github.com/lately-go/lately/rules"`,
		"hotkey/ok.go":              `package hotkey; import ("github.com/lately-go/lately/window"; "github.com/lately-go/lately/match")`,
		"hotkey/bad.go":             `package hotkey; import "github.com/lately-go/lately/ratelimit"`,
		"hotkey/other.go":           "//go:build plan9 && race\n\npackage hotkey; import _ \"expvar\"",
		"lately.go":                 `package lately; import "github.com/goccy/go-yaml"`,
		"rules/parse.go":            `package rules; import ("github.com/goccy/go-yaml/ast"; "github.com/goccy/go-yaml2")`,
		"internal/ring/ring.go":     `package ring; import "github.com/lately-go/lately"`,
		"util/strings.go":           `package util`,
		"util/more.go":              `package util`,
		"rules/parse_test.go":       `package rules_test; import ("go.uber.org/goleak"; "github.com/stretchr/testify/assert")`,
		"benchmarks/go.mod":         `module benchmarks`,
		"benchmarks/peers/peers.go": `package peers; import "example.com/peer"`,
		"match/testdata/x.go":       `package x; import "example.com/x"`,
		".hidden/x.go":              `package x; import "example.com/x"`,
	})
	got := append(mustParse(t, table).check(files), mustParse(t, testTable).checkTests(files)...)
	want := []string{
		"hotkey/bad.go: hotkey may not import " + modulePath + "/ratelimit",
		"hotkey/other.go: hotkey may not import expvar: " + never["expvar"],
		"internal/ring/ring.go: internal/ring may not import " + modulePath,
		"lately.go: package . is not in the table of internal/deptest/rules_test.go",
		"rules/parse.go: rules may not import github.com/goccy/go-yaml2",
		"util/more.go: package util is not in the table of internal/deptest/rules_test.go",
		"rules/parse_test.go: tests may not import github.com/stretchr/testify/assert",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the checker says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTableMistakesAreFound(t *testing.T) {
	for _, tt := range []struct{ table, want string }{
		{"match std", "want who -> whom"},
		{"-> std", "want who -> whom"},
		{"match -> rulse", "rulse has no row"},
		{"match -> std, ", " has no row"},
	} {
		if _, err := parseRules(tt.table); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.table, err, tt.want)
		}
	}
}
