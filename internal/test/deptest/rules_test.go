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
// in and get back. Programs that import none of these packages download none of their
// modules: the fixture test checks it.
//
// A package stands above those it imports. Packages that do not exist yet may
// have a row; packages without a row may not exist.
const table = `
cmd/lately    -> internal/cli
internal/cli  -> internal/event/intake, internal/event/geo, internal/event/eventfield, internal/server, internal/server/access, internal/server/follow, internal/server/eventlist, internal/cli/migrate, internal/server/replaypage, replay, client, api, rules, ratelimit, accesslog, match, internal/file/fileperm, internal/wait, internal/rule/spelling, github.com/spf13/cobra, github.com/spf13/pflag, charm.land/bubbletea/v2, charm.land/lipgloss/v2, github.com/charmbracelet/x/ansi, github.com/charmbracelet/x/term, golang.org/x/sys, internal/rule/rulevalue, internal/event/address, internal/limit
cmd/samplelog -> internal/test/accesslogtest
cmd/manpages  -> internal/cli, github.com/spf13/cobra, github.com/spf13/pflag

internal/server         -> internal/http/refusal, internal/store/secret, internal/event/geo, api, internal/server/demo, latelyredis, internal/store, internal/server/loglimit, internal/wait, github.com/redis/rueidis, internal/server/follow, accesslog, latelyhttp, internal/server/enforce, internal/server/engine, internal/server/events, internal/server/listen, internal/server/access, internal/server/respapi, internal/server/httpapi, rules, match, ratelimit, hotkey, window, internal/server/journal, internal/file/fileperm, internal/server/apierror, internal/server/state, internal/server/counters, internal/server/bans, internal/server/reservations, internal/rule/rulevalue, internal/event/address, internal/rule/yamlfile, internal/rule/spelling, internal/rule/sentence, internal/event/eventfield, internal/event/when
internal/server/respapi -> api, internal/server/engine, internal/server/events, internal/server/listen, internal/server/access, internal/resp, internal/server/loglimit, rules, match, ratelimit, hotkey, window, internal/wait, internal/server/apierror, internal/server/keys, internal/server/hotkeys, internal/server/bans, internal/server/reservations, internal/rule/rulevalue, internal/limit
internal/server/throttle -> ratelimit, window, internal/counting/keytable, internal/limit, internal/counting/snapshot
internal/server/demo    -> internal/server/engine, rules
internal/server/httpapi -> internal/event/httpfield, internal/http/middleware, internal/http/refusal, internal/http/ratelimitheader, internal/event/crawlers, api, internal/server/demo, replay, internal/server/follow, internal/server/enforce, internal/server/engine, internal/server/events, internal/server/keptevents, internal/server/listen, internal/server/access, internal/server/console, latelyhttp, latelyprom, rules, match, ratelimit, hotkey, window, github.com/prometheus/client_golang, internal/server/apierror, internal/server/keys, internal/server/hotkeys, internal/server/bans, internal/server/reservations, internal/event/eventfield, internal/rule/rulevalue, internal/event/keyvalue
internal/server/engine  -> internal/rule/hashedplans, internal/event/crawlers, internal/store/secret, internal/event/geo, api, latelyredis, internal/server/throttle, internal/server/events, internal/server/history, internal/server/keptevents, internal/server/refused, internal/store, rules, match, ratelimit, hotkey, window, internal/server/journal, internal/counting/snapshot, internal/server/loglimit, internal/rule/spelling, internal/server/apierror, internal/server/keys, internal/server/hotkeys, internal/server/state, internal/event/keyvalue, internal/server/counters, internal/server/bans, internal/server/scan, internal/event/intake, internal/server/reservations, internal/event/eventfield, internal/event/address, internal/event/when, internal/batch, internal/rule/sentence
internal/server/listen  -> api, internal/server/engine, internal/server/access, internal/server/loglimit, internal/file/fileperm
internal/server/apierror -> api, internal/batch, ratelimit
internal/server/keys    -> api, internal/server/apierror, match, internal/event/address
internal/server/events  -> api
internal/server/history -> api
internal/server/refused -> match, ratelimit, window, internal/event/keyvalue
internal/server/keptevents -> match, internal/server/eventlist, internal/event/eventfield
internal/server/hotkeys -> api, internal/server/apierror, internal/server/keys, internal/server/state, internal/server/journal, hotkey, match, window, internal/counting/heap, internal/event/keyvalue, internal/event/when
internal/server/counters -> api, internal/server/apierror, internal/server/keys, internal/server/state, latelyredis, rules, match, window, internal/event/keyvalue, internal/rule/rulevalue, internal/event/when, internal/rule/sentence, internal/counting/heap
internal/server/bans    -> api, internal/event/keyvalue, internal/server/apierror, internal/server/history, internal/server/journal, internal/server/keys, internal/server/loglimit, internal/server/scan, internal/server/state, match, ratelimit, internal/event/address, internal/limit, internal/ban
internal/server/scan    -> api, internal/server/apierror
internal/server/reservations -> internal/counting/snapshot, internal/server/state, ratelimit, rules, api, internal/store/secret, internal/server/apierror, internal/server/keptevents, internal/batch, internal/rule/sentence
internal/server/state   -> window
internal/server/access  -> internal/file/fileperm
internal/server/console -> std
replay         -> api, rules, match, accesslog, latelyhttp, ratelimit, hotkey, window, internal/counting/ring, internal/file/decompress, github.com/klauspost/compress, internal/rule/spelling, internal/event/keyvalue, internal/event/intake, internal/event/eventfield, internal/event/when, internal/rule/rulevalue, internal/event/address, internal/limit, internal/rule/yamlfile, internal/file/fileperm, github.com/goccy/go-yaml, internal/batch, internal/rule/sentence, internal/counting/heap, internal/ban
internal/server/replaypage     -> internal/server/console, replay

internal/cli/migrate -> rules, accesslog, internal/rule/rulevalue
client      -> api, hotkey, ratelimit, match, window, internal/resp, internal/wait, internal/event/keyvalue
rules       -> internal/event/intake, internal/event/crawlers, match, ratelimit, hotkey, internal/rule/invalid, internal/limit, internal/file/fileperm, github.com/goccy/go-yaml, internal/event/keyvalue, internal/event/when, internal/rule/rulevalue, internal/event/address, internal/rule/yamlfile, internal/rule/sentence
latelyhttp  -> internal/event/httpfield, internal/http/refusal, internal/http/ratelimitheader, internal/http/middleware, ratelimit, hotkey, match, window, internal/wait, internal/event/keyvalue, internal/event/eventfield, internal/event/intake, internal/event/address
latelygrpc  -> latelyhttp, internal/http/ratelimitheader, internal/http/middleware, ratelimit, hotkey, match, window, google.golang.org/grpc, google.golang.org/genproto, google.golang.org/protobuf, internal/wait, internal/event/intake
latelyredis -> internal/store/secret, window, ratelimit, match, internal/store, internal/limit, internal/ban, internal/counting/keytable, internal/counting/snapshot, internal/wait, internal/resp, github.com/redis/rueidis, internal/event/keyvalue
latelyprom  -> ratelimit, hotkey, match, window, github.com/prometheus/client_golang

internal/event/httpfield            -> internal/http/middleware, internal/event/intake, internal/event/eventfield, match
internal/http/refusal              -> internal/http/middleware, internal/http/ratelimitheader, ratelimit
internal/http/middleware           -> internal/rule/hashedplans, internal/http/ratelimitheader, ratelimit, match, internal/event/intake
internal/http/ratelimitheader      -> ratelimit, internal/limit
internal/store/storetest      -> internal/store, internal/limit, internal/test/randtest, internal/test/windowtest, ratelimit, match, window, internal/event/keyvalue, internal/ban
ratelimit           -> match, window, internal/ban, internal/rule/invalid, internal/store, internal/limit, internal/counting/ring, internal/counting/keytable, internal/counting/snapshot, internal/counting/sketch, internal/wait, internal/rule/spelling, internal/event/keyvalue, internal/event/when, internal/event/intake, internal/event/address, internal/batch
hotkey              -> match, window, internal/rule/invalid, internal/rule/spelling, internal/limit, internal/counting/ring, internal/counting/keytable, internal/counting/snapshot, internal/counting/sketch, internal/event/keyvalue, internal/event/when, internal/counting/heap

internal/server/follow -> internal/counting/heap, api, accesslog, match, internal/file/decompress, internal/file/fileperm, internal/server/eventlist, internal/event/eventfield, internal/event/address
internal/server/eventlist -> match

accesslog               -> match, internal/counting/ring, internal/rule/spelling, accesslog/internal/regex, internal/event/eventfield, internal/event/address, internal/file/fileperm
sampled                 -> window
internal/test/accesslogtest -> std
internal/event/crawlers -> match, internal/event/address
internal/event/geo -> rules, internal/event/keyvalue, match, internal/file/fileperm, github.com/oschwald/maxminddb-golang/v2, internal/event/eventfield, internal/event/address, internal/event/when
internal/test/geotest -> std
internal/test/dnstest -> std
internal/file/decompress -> github.com/klauspost/compress
internal/test/must -> std
internal/test/randtest -> std
internal/test/windowtest -> internal/limit
internal/test/journaltest -> std
internal/test/netnstest -> golang.org/x/sys
internal/test/overlay -> internal/test/must
internal/test/browsertest -> std
internal/test/freeport -> std
window                  -> internal/counting/ring, internal/counting/keytable, internal/counting/snapshot, internal/counting/heap

match               -> internal/event/address
api                 -> std
internal/ban        -> internal/rule/invalid, internal/counting/heap, internal/counting/keytable, internal/limit, internal/counting/snapshot
internal/batch      -> match
internal/limit      -> internal/counting/ring, internal/counting/keytable, internal/counting/snapshot
internal/event/keyvalue -> match, internal/event/address
internal/event/intake -> internal/event/keyvalue, match, internal/event/eventfield
internal/rule/hashedplans -> ratelimit
internal/rule/invalid -> std
internal/event/eventfield -> match
internal/event/when -> match, internal/event/address, internal/event/eventfield, internal/event/keyvalue
internal/rule/sentence -> match, ratelimit, hotkey, internal/event/keyvalue, internal/rule/rulevalue, internal/event/when
internal/rule/yamlfile -> internal/rule/rulevalue, internal/rule/spelling, github.com/goccy/go-yaml
internal/rule/rulevalue -> match, ratelimit, internal/limit, internal/event/intake, internal/rule/spelling, internal/event/eventfield
internal/event/address    -> std
internal/counting/heap       -> std
internal/store/secret     -> std
internal/counting/ring       -> std
accesslog/internal/regex    -> std
internal/store      -> internal/limit, internal/ban
internal/counting/keytable   -> internal/counting/snapshot
internal/counting/snapshot   -> std
internal/counting/sketch     -> internal/counting/ring, internal/counting/keytable
internal/resp       -> std
internal/test/resptest -> std
internal/test/adaptertest -> latelyhttp, match, ratelimit
internal/test/storm      -> golang.org/x/sys, api, client, internal/resp, internal/test/redistest
internal/test/redistest  -> internal/test/freeport, github.com/redis/rueidis
internal/file/fileperm   -> std
internal/server/journal    -> internal/file/fileperm
internal/server/loglimit   -> std
internal/rule/spelling    -> std
internal/wait       -> std
internal/server/enforce    -> internal/counting/heap, api, match, ratelimit, internal/file/fileperm, internal/server/loglimit, internal/wait, internal/event/keyvalue, internal/event/address
internal/test/deptest    -> std
`

// testTable lists the outside modules that tests may import, besides the packages of this module.
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

// outside reports whether an import path or a name in the table belongs to another module: the paths of the standard
// library have no dot in the first element.
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

// allows reports whether a package may import a path.
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
				wrong = append(wrong, fmt.Sprintf("%s: package %s is not in the table of internal/test/deptest/rules_test.go", f.name, f.folder))
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

// The checker must find the planted faults, and nothing else.
func TestCheckerFindsPlantedViolations(t *testing.T) {
	files := mustLoad(t, sources{
		"match/match.go":                 `package match; import "strings"`,
		"match/match_test.go":            `package match; import "github.com/lately-go/lately/rules"`,
		"hotkey/ok.go":                   `package hotkey; import ("github.com/lately-go/lately/window"; "github.com/lately-go/lately/match")`,
		"hotkey/bad.go":                  `package hotkey; import "github.com/lately-go/lately/ratelimit"`,
		"hotkey/other.go":                "//go:build plan9 && race\n\npackage hotkey; import _ \"expvar\"",
		"lately.go":                      `package lately; import "github.com/goccy/go-yaml"`,
		"rules/parse.go":                 `package rules; import ("github.com/goccy/go-yaml/ast"; "github.com/goccy/go-yaml2")`,
		"internal/counting/ring/ring.go": `package ring; import "github.com/lately-go/lately"`,
		"util/strings.go":                `package util`,
		"util/more.go":                   `package util`,
		"rules/parse_test.go":            `package rules_test; import ("go.uber.org/goleak"; "github.com/stretchr/testify/assert")`,
		"benchmarks/go.mod":              `module benchmarks`,
		"benchmarks/peers/peers.go":      `package peers; import "example.com/peer"`,
		"match/testdata/x.go":            `package x; import "example.com/x"`,
		".hidden/x.go":                   `package x; import "example.com/x"`,
	})
	got := append(mustParse(t, table).check(files), mustParse(t, testTable).checkTests(files)...)
	want := []string{
		"hotkey/bad.go: hotkey may not import " + modulePath + "/ratelimit",
		"hotkey/other.go: hotkey may not import expvar: " + never["expvar"],
		"internal/counting/ring/ring.go: internal/counting/ring may not import " + modulePath,
		"lately.go: package . is not in the table of internal/test/deptest/rules_test.go",
		"rules/parse.go: rules may not import github.com/goccy/go-yaml2",
		"util/more.go: package util is not in the table of internal/test/deptest/rules_test.go",
		"rules/parse_test.go: tests may not import github.com/stretchr/testify/assert",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the checker reports\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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
