package rules

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// planned is a rules file with a file of plans beside it.
const plannedFile = "version: 1\nfields: {tenant: {}}\nlimits:\n- {name: a, key: tenant, limit: {by: tenant, plans: plans.txt, default: 60 per 1m, at_most: 10000 per 1m}}\n"

// minute parses the numbers of plans of plannedFile.
var minute = likeDefault(ratelimit.Sliding, ratelimit.Limit{N: 60, Span: time.Minute})

// limitOf returns the N that a tenant is judged by.
func limitOf(t *testing.T, l *ratelimit.Limiter, tenant string) uint64 {
	t.Helper()
	var e match.Event
	e.SetNamedString("tenant", tenant)
	byEvent := l.Peek(&e)
	r := must.Get(l.Rule("a"))(t)
	if byKey := r.Peek(tenant); byKey.Limit != byEvent.Limit {
		t.Errorf("%s: judged by %d as an event and by %d as a key", tenant, byEvent.Limit, byKey.Limit)
	}
	return byEvent.Limit
}

func TestPlanFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": plannedFile,
		"plans.txt":  "\ufeff# customers\nacme 600\r\n\n  beta\t1200 per 1m  \ngamma#1 1_000\n#delta 5\nlast 10000",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l := must.Get(Open(filepath.Join(dir, "rules.yaml")))(t)
	for tenant, want := range map[string]uint64{
		"acme": 600, "beta": 1200, "gamma#1": 1000, "last": 10000,
		"delta": 60, "#delta": 60, "other": 60, "acm": 60, "acme ": 60, "acme 600": 60, "customers": 60,
	} {
		if n := limitOf(t, l, tenant); n != want {
			t.Errorf("%q is judged by %d, want %d", tenant, n, want)
		}
	}
}

func TestPlanFileMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `plans.txt:1:1: no plan: must be a key and its number in each line, such as "acme 600"`},
		{"# none\n", `plans.txt:1:1: no plan: must be a key and its number in each line, such as "acme 600"`},
		{"acme 600\n beta", `plans.txt:2:6: "beta": no number: must be a key and its number, such as "acme 600"`},
		{"acme 0", `plans.txt:1:6: "0": must be 1 or more`},
		{"acme -1", `plans.txt:1:6: "-1": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"`},
		{"acme 60 per 1h", `plans.txt:1:6: "60 per 1h": must have the span and the burst of the default, as a key has one window`},
		{"acme 10001", `plans.txt:1:6: "10001": must be at most 10000, which is at_most`},
		{"acme 99999999999999999999", `plans.txt:1:6: "99999999999999999999": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"`},
		{"é 1\nacme 600\n\tacme 700", `plans.txt:3:2: key "acme" twice: must be given once, and line 2 has it`},
		{strings.Repeat("x\n", 20), strings.Repeat("plans.txt:N:2: \"x\": no number: must be a key and its number, such as \"acme 600\"\n", 10) + "plans.txt:10:1: too many mistakes: what follows was not read"},
	} {
		table := &planTable{version: version{path: "plans.txt"}, atMost: 10000}
		got := table.parse([]byte(c.text), minute).Error()
		want := c.want
		for i := 1; strings.Contains(want, ":N:"); i++ {
			want = strings.Replace(want, ":N:", fmt.Sprintf(":%d:", i), 1)
		}
		if got != want {
			t.Errorf("%q:\n%s\nwant\n%s", c.text, got, want)
		}
	}
}

// TestConcurrentPlanFileIsReadAgain changes the files under a limiter: a mistake keeps the last good ones, and
// a key keeps its window.
func TestConcurrentPlanFileIsReadAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("rules.yaml", plannedFile)
	write("plans.txt", "acme 100\n")
	synctest.Test(t, func(t *testing.T) {
		l := must.Get(Open("rules.yaml"))(t)
		rule := must.Get(l.Rule("a"))(t)
		var mu sync.Mutex
		var seen []string
		ctx, stop := context.WithCancel(t.Context())
		go Watch(ctx, l, func(_ *File, err error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(err))
		}, "rules.yaml")
		var want []string
		for i, step := range []struct {
			do   func()
			want string
			n    uint64
		}{
			{func() {}, "<nil>", 100},
			{func() { write("plans.txt", "acme 200\n") }, "<nil>", 200},
			{func() { write("plans.txt", "acme 300\nbeta\n") }, `plans.txt:2:5: "beta": no number: must be a key and its number, such as "acme 600"`, 200},
			{func() { os.Remove("plans.txt") }, "rules.yaml:4:53: plans: stat plans.txt: no such file or directory", 200},
			{func() { write("plans.txt", "beta 300\n") }, "<nil>", 60},
			{func() { write("plans.txt", "acme 3\n") }, "<nil>", 3},
			{func() { write("rules.yaml", plannedFile+"# the same\n") }, "<nil>", 3},
		} {
			step.do()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			want = append(want, step.want)
			mu.Lock()
			if !reflect.DeepEqual(seen, want) {
				t.Fatalf("after step %d:\n%q\nwant\n%q", i, seen, want)
			}
			mu.Unlock()
			used := uint64(i)
			if d := rule.Take("acme"); d.Limit != step.n || d.Remaining != step.n-min(step.n, used+1) {
				t.Errorf("step %d: %+v, want a limit of %d with %d used", i, d, step.n, used+1)
			}
		}
		stop()
		synctest.Wait()
	})
}

// TestDraftHasThePlansInForce checks rules that may replace those in force, which no folder has.
func TestDraftHasThePlansInForce(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"rules.yaml": plannedFile, "plans.txt": "acme 100\n"} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	f := must.Get(Load("rules.yaml"))(t)
	for _, draft := range []struct {
		text string
		n    uint64
		warn string
	}{
		{plannedFile, 100, ""},
		{strings.ReplaceAll(plannedFile, "plans.txt", "others.txt"), 60, `draft:4:53: plans: "others.txt": not read: the rules in force do not name it, and only a rules file on disk reads files`},
	} {
		d := must.Get(f.Draft("draft", []byte(draft.text)))(t)
		l := must.Get(ratelimit.NewLimiter(d.Limits, ratelimit.Config{}))(t)
		if n := limitOf(t, l, "acme"); n != draft.n {
			t.Errorf("judged by %d, want %d", n, draft.n)
		}
		if got := d.Warnings.Error(); got != draft.warn {
			t.Errorf("warnings %s, want %s", got, draft.warn)
		}
	}
}

// FuzzPlanFile compares a table with a map that is filled from the lines, one by one.
func FuzzPlanFile(f *testing.F) {
	for _, s := range []string{"acme 600\nbeta 700 per 1m\n# x\r\n\n\tgamma  1_0 ", "a 1\na 2", "\ufeffa 1", "a", "a 0", "é 1\n\x00 2", "# 1", "a#b 3\n a 4\r"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table := &planTable{version: version{path: "plans"}, atMost: 10000}
		errs := table.parse(data, minute)
		if table.count == 0 && len(errs) == 0 || len(errs) > maxLineMistakes+1 {
			t.Fatalf("%d plans and %d mistakes", table.count, len(errs))
		}
		lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
		for _, e := range errs {
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 {
				t.Errorf("%v: there are %d lines", e, len(lines))
			}
		}
		if len(errs) > 0 {
			return
		}
		want := map[string]uint64{}
		for _, line := range lines {
			line = strings.Trim(line, " \t\r")
			if line == "" || line[0] == '#' {
				continue
			}
			i := strings.IndexAny(line, " \t")
			n, err := minute(strings.Trim(line[i:], " \t"))
			if _, twice := want[line[:i]]; err != nil || n > 10000 || twice {
				t.Fatalf("%q was accepted", line)
			}
			want[line[:i]] = n
		}
		if table.count != len(want) {
			t.Errorf("%d plans, want %d", table.count, len(want))
		}
		for key, n := range want {
			if got, ok := table.N([]byte(key)); got != n || !ok {
				t.Errorf("%q has %d, %v, want %d", key, got, ok, n)
			}
			for _, other := range []string{key + "x", key[:len(key)-1], " " + key} {
				if _, has := want[other]; has {
					continue
				}
				if got, ok := table.N([]byte(other)); ok {
					t.Errorf("%q, which no line has, has %d", other, got)
				}
			}
		}
	})
}

// BenchmarkPlanFile reads a million lines, looks whether the file has changed, and finds a plan.
func BenchmarkPlanFile(b *testing.B) {
	var text strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "customer-%07d %d\n", i, 1+i%9999)
	}
	path := filepath.Join(b.TempDir(), "plans")
	must.Do(b, os.WriteFile(path, []byte(text.String()), 0o600))
	data := []byte(text.String())
	table := &planTable{version: version{path: path, most: maxPlanFile}, atMost: 10000}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			table = &planTable{version: table.version, atMost: 10000}
			if errs := table.parse(data, minute); errs != nil {
				b.Fatal(errs)
			}
		}
		b.ReportMetric(float64(len(table.text)+8*len(table.slots))/1e6, "MB")
	})
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			table.version.current()
		}
	})
	b.Run("find", func(b *testing.B) {
		key, i := make([]byte, 0, 32), 0
		for b.Loop() {
			i = (i + 7919) % 1_000_000
			key = fmt.Appendf(key[:0], "customer-%07d", i)
			if _, ok := table.N(key); !ok {
				b.Fatal("not found")
			}
		}
	})
}

// TestConcurrentPlansUnderLoad reloads a file of plans while other goroutines take: none of them is refused, and each
// customer has the plan in the old file or in the new one. The long form has a million lines.
func TestConcurrentPlansUnderLoad(t *testing.T) {
	lines, reloads := 20_000, 4
	if os.Getenv("LATELY_LONG") != "" {
		lines, reloads = 1_000_000, 10
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(version int) {
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "customer-%07d %d\n", i, 5000+version)
		}
		must.Do(t, os.WriteFile(path("new"), []byte(text.String()), 0o600))
		must.Do(t, os.Rename(path("new"), path("plans.txt")))
	}
	write(0)
	must.Do(t, os.WriteFile(path("rules.yaml"), []byte(plannedFile), 0o600))
	f := must.Get(Load(path("rules.yaml")))(t)
	l := must.Get(ratelimit.NewLimiter(f.Limits, ratelimit.Config{}))(t)
	rule := must.Get(l.Rule("a"))(t)
	var version, taken, slowest atomic.Int64
	var load sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		load.Go(func() {
			for i := g; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				customer := fmt.Sprintf("customer-%07d", i*7919%lines)
				from, begun := version.Load(), time.Now()
				d := rule.Take(customer)
				if took := int64(time.Since(begun)); took > slowest.Load() {
					slowest.Store(took)
				}
				if to := version.Load(); !d.Allowed && d.Remaining > 0 || d.Err != nil || d.Limit < 5000+uint64(from) || d.Limit > 5001+uint64(to) {
					t.Errorf("%s: %+v, between versions %d and %d", customer, d, from, to)
					return
				}
				taken.Add(1)
			}
		})
	}
	longest := time.Duration(0)
	for v := 1; v <= reloads; v++ {
		write(v)
		begun := time.Now()
		next, err := Load(path("rules.yaml"))
		if err == nil {
			err = l.Update(next.Limits)
		}
		if err != nil {
			t.Fatal(err)
		}
		version.Store(int64(v))
		longest = max(longest, time.Since(begun))
	}
	close(stop)
	load.Wait()
	t.Logf("%d lines reloaded %d times, the slowest reload in %v, during %d takes, the slowest in %v", lines, reloads, longest, taken.Load(), time.Duration(slowest.Load()))
	if d := rule.Peek("customer-0000000"); d.Limit != 5000+uint64(reloads) {
		t.Errorf("judged by %d after the last reload, want %d", d.Limit, 5000+reloads)
	}
}
