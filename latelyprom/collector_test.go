package latelyprom_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyprom"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limitOf returns a rule of n a minute.
func limitOf(t testing.TB, name string, n uint64) ratelimit.Rule {
	t.Helper()
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	return ratelimit.Rule{Name: name, Key: key, Limits: []ratelimit.Limit{{N: n, Span: time.Minute}}}
}

func newLimiter(t testing.TB, c ratelimit.Config, rules ...ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rules...))(t)
	l := must.Get(ratelimit.NewLimiter(set, c))(t)
	return l
}

// take judges a client under all rules.
func take(l *ratelimit.Limiter, client string) {
	var e match.Event
	e.SetString(match.Client, client)
	l.Take(&e)
}

func newCollector(t testing.TB, l *ratelimit.Limiter, c latelyprom.Config) *latelyprom.Collector {
	t.Helper()
	collector := must.Get(latelyprom.New(l, c))(t)
	return collector
}

// The number of series depends on the rules, not on the keys. The control has a series for each of its keys, and must fail.
func TestSeriesDoNotDependOnKeys(t *testing.T) {
	keys := 100_000
	switch {
	case os.Getenv("LATELY_LONG") != "":
		keys = 1_000_000
	case testing.Short():
		keys = 20_000
	}
	limiter := newLimiter(t, ratelimit.Config{}, limitOf(t, "a", 1), limitOf(t, "b", 2), limitOf(t, "c", 3))
	collector := newCollector(t, limiter, latelyprom.Config{})
	control := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "control", Help: "One for each key."}, []string{"key"})
	for _, n := range []int{0, keys} {
		for i := range n {
			key := fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff)
			take(limiter, key)
			if i < 100 {
				control.WithLabelValues(key).Inc()
			}
		}
		if got, want := testutil.CollectAndCount(collector), 3*15+7; got != want {
			t.Errorf("with %d keys there are %d series, want %d", n, got, want)
		}
		if got, want := testutil.CollectAndCount(control), min(n, 100); got != want {
			t.Errorf("with %d keys the control has %d series, want %d", n, got, want)
		}
	}
	if held := limiter.Stats().Rules[0].Keys; held < keys/2 {
		t.Errorf("only %d of %d keys are held", held, keys)
	}
}

// Each figure of Stats is a series, except the bans of all rules, which are a sum.
func TestNoFigureIsLeftOut(t *testing.T) {
	collector := newCollector(t, newLimiter(t, ratelimit.Config{}, limitOf(t, "a", 1)), latelyprom.Config{})
	figures := -1
	for _, typ := range []reflect.Type{reflect.TypeFor[ratelimit.Stats](), reflect.TypeFor[ratelimit.RuleStats]()} {
		for f := range typ.Fields() {
			if f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Int64 || f.Type.Kind() == reflect.Uint64 {
				figures++
			}
		}
	}
	if got := testutil.CollectAndCount(collector); got != figures {
		t.Errorf("there are %d series of a rule and its limiter, which have %d figures", got, figures)
	}
}

func TestFigures(t *testing.T) {
	banning := limitOf(t, "banning", 2)
	banning.Ban = &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	shadow := limitOf(t, "shadow", 1)
	shadow.Shadow = true
	limiter := newLimiter(t, ratelimit.Config{Budget: 16 << 20}, banning, shadow)
	collector := newCollector(t, limiter, latelyprom.Config{})
	// Two are allowed, one refused; the fourth begins the ban, which holds for
	// the fifth and sixth. Another client is allowed.
	for range 6 {
		take(limiter, "192.0.2.1")
	}
	take(limiter, "192.0.2.2")
	want := `
# HELP lately_events_total Events that match the rule, by outcome.
# TYPE lately_events_total counter
lately_events_total{outcome="allowed",rule="banning"} 3
lately_events_total{outcome="banned",rule="banning"} 3
lately_events_total{outcome="refused",rule="banning"} 1
lately_events_total{outcome="shadow",rule="banning"} 0
lately_events_total{outcome="skipped",rule="banning"} 0
lately_events_total{outcome="allowed",rule="shadow"} 2
lately_events_total{outcome="banned",rule="shadow"} 0
lately_events_total{outcome="refused",rule="shadow"} 0
lately_events_total{outcome="shadow",rule="shadow"} 3
lately_events_total{outcome="skipped",rule="shadow"} 2
# HELP lately_bans_started_total Bans that the rule began.
# TYPE lately_bans_started_total counter
lately_bans_started_total{rule="banning"} 1
lately_bans_started_total{rule="shadow"} 0
# HELP lately_bans Bans in force under the rule.
# TYPE lately_bans gauge
lately_bans{rule="banning"} 1
lately_bans{rule="shadow"} 0
# HELP lately_keys Keys that the rule holds.
# TYPE lately_keys gauge
lately_keys{rule="banning"} 2
lately_keys{rule="shadow"} 2
# HELP lately_limit Current N of the rule's first limit.
# TYPE lately_limit gauge
lately_limit{rule="banning"} 2
lately_limit{rule="shadow"} 1
# HELP lately_bans_remembered Keys whose ban has ended, but makes the next one longer.
# TYPE lately_bans_remembered gauge
lately_bans_remembered 0
# HELP lately_memory_budget_bytes Memory that limits and bans may use, including the reserve.
# TYPE lately_memory_budget_bytes gauge
lately_memory_budget_bytes 1.6777216e+07
`
	err := testutil.CollectAndCompare(collector, strings.NewReader(want), "lately_events_total",
		"lately_bans_started_total", "lately_bans", "lately_keys", "lately_limit", "lately_bans_remembered", "lately_memory_budget_bytes")
	if err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(collector)
	if err != nil || len(problems) > 0 {
		t.Errorf("the lint reports %v (%v)", problems, err)
	}
}

// A memory without bound has no budget to show.
func TestNoBudget(t *testing.T) {
	collector := newCollector(t, newLimiter(t, ratelimit.Config{Budget: -1}, limitOf(t, "a", 1)), latelyprom.Config{})
	if n := testutil.CollectAndCount(collector, "lately_memory_budget_bytes"); n != 0 {
		t.Errorf("it shows %d budgets", n)
	}
	if n := testutil.CollectAndCount(collector, "lately_memory_bytes"); n != 1 {
		t.Errorf("it shows %d sizes", n)
	}
}

// Two limiters share a registry, if their labels differ.
func TestLabels(t *testing.T) {
	one, two := newLimiter(t, ratelimit.Config{}, limitOf(t, "a", 1)), newLimiter(t, ratelimit.Config{}, limitOf(t, "a", 1))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(t, one, latelyprom.Config{Labels: prometheus.Labels{"limiter": "one"}}))
	registry.MustRegister(newCollector(t, two, latelyprom.Config{Labels: prometheus.Labels{"limiter": "two"}}))
	if n, err := testutil.GatherAndCount(registry, "lately_events_total"); n != 10 || err != nil {
		t.Errorf("%d series of events (%v), want 5 for each", n, err)
	}
	if err := registry.Register(newCollector(t, one, latelyprom.Config{Labels: prometheus.Labels{"limiter": "two"}})); err == nil {
		t.Error("the same labels were taken twice")
	}
	for _, label := range []string{"rule", "outcome", "__name__"} {
		if _, err := latelyprom.New(one, latelyprom.Config{Labels: prometheus.Labels{label: "x"}}); err == nil || !strings.Contains(err.Error(), "Config.Labels: map["+label) {
			t.Errorf("the label %s: %v", label, err)
		}
	}
	if _, err := latelyprom.New(nil, latelyprom.Config{}); err == nil || !strings.Contains(err.Error(), "ratelimit.New") {
		t.Errorf("a nil limiter: %v", err)
	}
}

// Any rule's name can be shown, and two names stay two.
func TestNamesNotUTF8(t *testing.T) {
	limiter := newLimiter(t, ratelimit.Config{}, limitOf(t, "a\xff", 1), limitOf(t, "a\xfe", 1), limitOf(t, "ü \"\n", 1))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(t, limiter, latelyprom.Config{}))
	if n, err := testutil.GatherAndCount(registry, "lately_keys"); n != 3 || err != nil {
		t.Errorf("%d series of keys (%v), want 3", n, err)
	}
}

// Figures can be read while decisions are made; counters never decrease.
func TestConcurrentScrapeUnderLoad(t *testing.T) {
	limiter := newLimiter(t, ratelimit.Config{}, limitOf(t, "a", 10))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(t, limiter, latelyprom.Config{}))
	const callers, each = 4, 5000
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				take(limiter, fmt.Sprint(c, i%100))
			}
		})
	}
	last := 0.0
	for range 50 {
		events := eventsIn(t, registry)
		if events < last {
			t.Errorf("%v events after %v", events, last)
		}
		last = events
	}
	wg.Wait()
	if events := eventsIn(t, registry); events != callers*each {
		t.Errorf("%v events, want %d", events, callers*each)
	}
}

// eventsIn returns the sum of all outcomes.
func eventsIn(t *testing.T, registry *prometheus.Registry) (sum float64) {
	t.Helper()
	families := must.Get(registry.Gather())(t)
	for _, f := range families {
		if f.GetName() != "lately_events_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

func BenchmarkCollect(b *testing.B) {
	var rules []ratelimit.Rule
	for n := range 10 {
		rules = append(rules, limitOf(b, fmt.Sprint("rule ", n), 10))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(b, newLimiter(b, ratelimit.Config{}, rules...), latelyprom.Config{}))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(registry.Gather())(b)
	}
}
