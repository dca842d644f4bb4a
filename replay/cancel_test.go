package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
)

// A stopper stops a run once its log has been read so far, and then goes on.
type stopper struct {
	*bytes.Reader
	at   int // bytes that are left
	stop context.CancelFunc
}

func (s *stopper) Read(b []byte) (int, error) {
	if s.Len() <= s.at {
		s.stop()
	}
	return s.Reader.Read(b)
}

// TestCancel stops runs before, while and at the end of reading, and then
// while judging. That no goroutine is left is seen to by TestMain.
func TestCancel(t *testing.T) {
	var log bytes.Buffer
	for i := range 300_000 {
		fmt.Fprintf(&log, "%d,c%d\n", i/10, i%97)
	}
	for _, c := range []struct {
		name string
		left int
	}{{"at once", log.Len()}, {"in the middle", log.Len() / 2}, {"at the end", 0}} {
		for _, cores := range []int{1, 3} {
			ctx, stop := context.WithCancel(t.Context())
			src := &stopper{bytes.NewReader(log.Bytes()), c.left, stop}
			r, err := replay.Run(ctx, replay.Config{
				Files: []string{"-", "-"}, Stdin: src, Format: smallFormat, Cores: cores,
				WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "5/1s")},
			})
			if !errors.Is(err, context.Canceled) || r != nil {
				t.Errorf("%s, %d cores: error %v, report %v", c.name, cores, err, r)
			}
			if c.left == log.Len() && src.Len() < log.Len()-2*blockSize {
				t.Errorf("%s: reading went on to %d of %d bytes", c.name, log.Len()-src.Len(), log.Len())
			}
		}
	}
}

// A quietContext is done at the n-th call of Err, so that a test can stop a run that no longer reads.
type quietContext struct {
	context.Context
	asked func() bool
}

func (c quietContext) Err() error {
	if c.asked() {
		return context.Canceled
	}
	return nil
}

// TestCancelJudging stops runs in the middle of judging what-ifs, rules on one
// key and rules on several.
func TestCancelJudging(t *testing.T) {
	var log bytes.Buffer
	for i := range 300_000 {
		fmt.Fprintf(&log, "%d,c%d\n", i/10, i%97)
	}
	path := writeFile(t, "log", log.Bytes())
	for name, c := range map[string]replay.Config{
		"what-ifs": {WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "5/1s")}},
		"hot":      {WhatIfs: []replay.WhatIf{whatIf(t, replay.Hot, "client:5/1s")}},
		"rules":    {Rules: mustRules(t, "version: 1\nlimits: [{name: a, key: client, limit: 5 per 1s}]\n")},
		"hot rule": {Rules: mustRules(t, "version: 1\nhot: [{name: a, key: client, threshold: 5 per 1s}]\n")},
	} {
		c.Files, c.Format, c.Cores = []string{path}, smallFormat, 1
		var p replay.Progress
		c.Progress = &p
		times := 0
		ctx := quietContext{t.Context(), func() bool {
			if p.Judging.Load() > 0 {
				times++
			}
			return times > 3
		}}
		r, err := replay.Run(ctx, c)
		if !errors.Is(err, context.Canceled) || r != nil {
			t.Errorf("%s: error %v, report %v", name, err, r)
		}
		if times < 4 || times > 8 { // three looks, one that stops, and a few on the way out
			t.Errorf("%s: looked %d times whether to stop", name, times)
		}
	}
}

// TestConfigErrors has each field wrong: the error names it, its value and what it must be, and nothing is read.
func TestConfigErrors(t *testing.T) {
	limit := whatIf(t, replay.Limit, "60/1m")
	for _, c := range []struct {
		config replay.Config
		want   string
	}{
		{replay.Config{}, "no file: must be"},
		{replay.Config{Top: -1}, "--top: -1: must be 1 to"},
		{replay.Config{Year: 10_000}, "--year: 10000: must be 1900 to 2149"},
		{replay.Config{Year: -3}, "--year: -3: must be"},
		{replay.Config{Resolution: 3 * time.Millisecond}, "--resolution: 3ms: must be from 1µs to 1h, and whole seconds or a divisor of a second"},
		{replay.Config{Resolution: 1500 * time.Millisecond}, "--resolution: 1.5s: must be"},
		{replay.Config{Resolution: 2 * time.Hour}, "--resolution: 2h0m0s: must be"},
		{replay.Config{Resolution: -time.Second}, "--resolution: -1s: must be"},
		{replay.Config{Format: "nope"}, `format "nope" is unknown; use clf, `},
		{replay.Config{Resolution: 7 * time.Second, WhatIfs: []replay.WhatIf{limit}}, "--limit 60/1m: window 1m0s: must be a multiple of the resolution 7s"},
		{replay.Config{Resolution: 7 * time.Second, Rules: mustRules(t, "version: 1\nhot: [{name: h, key: path, threshold: 5 per 1s}]\n")}, `rule "h": window 1s: must be a multiple`},
		{replay.Config{Resolution: 7 * time.Second, Rules: mustRules(t, "version: 1\nlimits: [{name: l, key: path, limit: 5 per 1s}]\n")}, `rule "l": window 1s: must be a multiple`},
		{replay.Config{Resolution: 7 * time.Second, Rules: mustRules(t, "version: 1\nbans: [{name: b, key: path, after: 5 hits in 1s, for: 7s}]\n")}, `rule "b": window 1s: must be a multiple`},
		{replay.Config{Rules: mustRules(t, "version: 1\n"), WhatIfs: []replay.WhatIf{limit}}, "--rules: must not be given with --limit, --ban or --hot"},
		{replay.Config{WhatIfs: []replay.WhatIf{{Text: "x", Kind: replay.Hot, N: 0, Span: time.Second}}}, "threshold: 0: must be 1 to"},
		{replay.Config{WhatIfs: []replay.WhatIf{{Text: "x", Kind: replay.Ban, N: 1 << 40, Span: time.Second, For: time.Second}}}, "ban.after: 1099511627776: must be at most"},
	} {
		if c.want != "no file: must be" {
			c.config.Files = []string{"-"} // and there is no standard input to read
		}
		r, err := replay.Run(t.Context(), c.config)
		if err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
		if again := c.config.Validate(); again == nil || again.Error() != err.Error() {
			t.Errorf("Validate: %v, Run: %v", again, err)
		}
	}
}

// TestCancelCountsRules judges events under many rules: how often a run checks its context depends on the number of events
// times the number of rules, and it stops at the first check after the end.
func TestCancelCountsRules(t *testing.T) {
	const many, rulesEach = 3000, 60
	log := func(events int) string {
		var text bytes.Buffer
		for i := range events {
			fmt.Fprintf(&text, "%d,c%d,u%d\n", i/100, i%97, i%89)
		}
		return writeFile(t, "log", text.Bytes())
	}
	text := "version: 1\nlimits:\n"
	for i := range rulesEach {
		text += fmt.Sprintf("  - {name: a%d, key: %s, limit: 5 per 1s}\n", i, []string{"client", "[client, user]"}[i%2])
	}
	file := mustRules(t, text)
	for name, run := range map[string]func(context.Context, replay.Config) error{
		"diff": func(ctx context.Context, c replay.Config) error {
			_, err := replay.Diff(ctx, replay.DiffConfig{Config: c, Old: file, New: file})
			return err
		},
		"replay": func(ctx context.Context, c replay.Config) error {
			c.Rules = file
			_, err := replay.Run(ctx, c)
			return err
		},
		"explain": func(ctx context.Context, c replay.Config) error {
			c.Rules = file
			_, err := replay.Explain(ctx, replay.ExplainConfig{Config: c, Value: "c1"})
			return err
		},
	} {
		looks, last := 0, 0
		ctx := quietContext{t.Context(), func() bool { looks++; return last > 0 && looks >= last }}
		of := func(path string) error {
			looks = 0
			return run(ctx, replay.Config{Files: []string{path}, Format: "csv:time=1@s,client=2,user=3", Cores: 1})
		}
		if err := of(log(100)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		few, path := looks, log(many)
		if err := of(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if more, least := looks-few, many*rulesEach>>16; more < least {
			t.Errorf("%s: looked %d times more whether to stop for %d rules of %d events, want at least %d", name, more, rulesEach, many, least)
		}
		for _, last = range []int{1, few, looks - 1} {
			if err := of(path); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: stopped at look %d: %v", name, last, err)
			}
			if most := last + 3*rulesEach; looks > most { // one for each task that is not begun
				t.Errorf("%s: looked %d times after it had to stop", name, looks-last)
			}
		}
	}
}

// TestProtectedNetworks compares a list of protected networks with a linear search.
func TestProtectedNetworks(t *testing.T) {
	rnd := randtest.New(t)
	network := func() netip.Prefix {
		a := netip.AddrFrom4([4]byte{10, byte(rnd.IntN(2)), byte(rnd.IntN(4)), byte(rnd.IntN(8))})
		bits := 16 + rnd.IntN(17)
		if rnd.IntN(3) == 0 {
			a = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(rnd.IntN(4)), byte(rnd.IntN(4))})
			bits = 24 + rnd.IntN(105)
		}
		p, _ := a.Prefix(bits)
		return p
	}
	met := 0
	for range 2000 {
		var list []string
		var networks []netip.Prefix
		for range rnd.IntN(8) {
			networks = append(networks, network())
			list = append(list, networks[len(networks)-1].String())
		}
		p := network()
		want := slices.ContainsFunc(networks, p.Overlaps)
		if got := replay.Protects("client", list, p.String()); got != want {
			t.Fatalf("%v of %v: protected %v, want %v", p, networks, got, want)
		}
		if want {
			met++
		}
	}
	if met < 100 {
		t.Errorf("only %d networks were protected", met)
	}
}
