package window

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

func mustRecent[T any](t testing.TB, config RecentConfig) *Recent[T] {
	t.Helper()
	r := must.Get(NewRecent[T](config))(t)
	return r
}

func TestNewRecentErrors(t *testing.T) {
	for _, c := range []struct {
		config RecentConfig
		want   string
	}{
		{RecentConfig{}, "span 0s: must be from 1ms to"},
		{RecentConfig{Span: MaxSpan + time.Second}, "must be from 1ms to"},
		{RecentConfig{Span: time.Second + 1}, "must be whole milliseconds"},
		{RecentConfig{Span: time.Second, Max: -1}, "recent max -1: must be from 1 to 1073741824 events, or 0 for 1024"},
		{RecentConfig{Span: time.Second, Max: maxRecent + 1}, "recent max 1073741825"},
		{RecentConfig{Span: time.Second, Ahead: -1}, "ahead -1ns"},
	} {
		if r, err := NewRecent[int](c.config); err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewRecent(%+v): error %v, want %q in it", c.config, err, c.want)
		}
	}
}

func TestRecentLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustRecent[string](t, RecentConfig{Span: 10 * time.Second})
		for _, s := range []string{"a", "b", "c"} {
			if !r.Add(s) {
				t.Errorf("%s was refused", s)
			}
			time.Sleep(4 * time.Second)
		}
		// Now is 12 s: a, at 0 s, is out, b and c are at 4 and 8 s.
		var got []string
		for _, e := range r.Append(nil) {
			got = append(got, e.Value)
			if age := time.Since(e.Time); age != 8*time.Second && age != 4*time.Second {
				t.Errorf("%s is %v old", e.Value, age)
			}
			r.Add(e.Value + " again") // the loop may add
		}
		if !slices.Equal(got, []string{"b", "c"}) || r.Len() != 4 {
			t.Errorf("got %q, then %d events; want b and c, then 4", got, r.Len())
		}
		time.Sleep(2*time.Second - time.Nanosecond)
		if r.Len() != 4 || r.Expire() != 0 {
			t.Errorf("%d events a nanosecond before b is out, want 4", r.Len())
		}
		time.Sleep(time.Nanosecond)
		if r.Len() != 3 || r.Expire() != 1 || r.Len() != 3 {
			t.Errorf("%d events when b is out, want 3", r.Len())
		}
		time.Sleep(time.Hour)
		if r.Len() != 0 || len(r.Append(nil)) != 0 || r.Expire() != 3 {
			t.Errorf("%d events after an hour", r.Len())
		}
	})
}

// recentModel is a plain list of all kept events, in order of times.
type recentModel struct {
	span, ahead     int64
	max             int
	refuseNew       bool
	events          []recentEvent[int]
	any, hasPending bool
	newest, pending int64

	dropped, refused, late, future uint64
}

func (m *recentModel) addAt(t int64, v int) bool {
	switch {
	case m.any && t <= m.newest-m.span:
		m.late++
		return false
	case m.any && m.ahead > 0 && t-m.newest >= m.ahead && (!m.hasPending || t-m.pending > m.span || m.pending-t > m.span):
		m.hasPending, m.pending = true, t
		m.future++
		return false
	}
	return m.keep(t, v)
}

func (m *recentModel) addLive(now int64, v int) bool {
	if m.any && now <= m.newest-m.span {
		now = m.newest
	}
	return m.keep(now, v)
}

func (m *recentModel) keep(t int64, v int) bool {
	edge := t - m.span
	if m.any {
		edge = max(t, m.newest) - m.span
	}
	kept := slices.DeleteFunc(slices.Clone(m.events), func(e recentEvent[int]) bool { return e.t <= edge })
	if len(kept) == m.max && m.refuseNew {
		m.refused++
		return false
	}
	i := 0
	for i < len(kept) && kept[i].t <= t {
		i++
	}
	kept = slices.Insert(kept, i, recentEvent[int]{t, v})
	if len(kept) > m.max {
		m.dropped++
		kept = kept[1:]
		if i == 0 {
			return false
		}
	}
	m.events = kept
	if !m.any || t > m.newest {
		m.any, m.newest = true, t
	}
	return true
}

func (m *recentModel) window(t int64) (events []Event[int]) {
	for _, e := range m.events {
		if e.t > t-m.span && e.t <= t {
			events = append(events, Event[int]{time.Unix(0, e.t).UTC(), e.value})
		}
	}
	return events
}

// TestRecentModel holds every verb against the list, in random sequences.
func TestRecentModel(t *testing.T) {
	sequences := 2000
	switch {
	case longTests():
		sequences = 1_000_000
	case testing.Short():
		sequences = 200
	}
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for seq := range sequences {
		config := RecentConfig{Span: time.Duration(1+rnd.IntN(50)) * time.Millisecond, Max: 1 + rnd.IntN(40), RefuseNew: rnd.IntN(2) == 0}
		if seq%3 == 0 {
			config.Ahead = time.Duration(1 + rnd.Int64N(3*int64(config.Span)))
		}
		r := mustRecent[int](t, config)
		m := &recentModel{span: int64(config.Span), ahead: int64(config.Ahead), max: config.Max, refuseNew: config.RefuseNew}
		at := rnd.Int64N(4e18) - 2e18
		for v := range 100 {
			at = m.step(rnd, at)
			switch rnd.IntN(4) {
			case 0:
				m.compare(t, r, at)
			case 1:
				if got, want := r.addLive(at, v), m.addLive(at, v); got != want {
					t.Errorf("live add at %d: %t, want %t", at, got, want)
				}
			default:
				if got, want := r.AddAt(time.Unix(0, at), v), m.addAt(at, v); got != want {
					t.Errorf("AddAt(%d) = %t, want %t", at, got, want)
				}
			}
			if t.Failed() {
				t.Fatalf("%+v, sequence %d", config, seq)
			}
		}
		if r.Stats().Dropped != m.dropped || r.Stats().Refused != m.refused || r.Stats().Late != m.late || r.Stats().Future != m.future {
			t.Fatalf("%+v: dropped %d, refused %d, late %d, future %d; want %d, %d, %d, %d", config,
				r.Stats().Dropped, r.Stats().Refused, r.Stats().Late, r.Stats().Future, m.dropped, m.refused, m.late, m.future)
		}
	}
}

func (m *recentModel) step(rnd *rand.Rand, t int64) int64 {
	switch rnd.IntN(10) {
	case 0, 1, 2, 3, 4:
		return t + rnd.Int64N(max(1, m.span/8))
	case 5:
		return t - rnd.Int64N(m.span)
	case 6:
		return t + rnd.Int64N(4*m.span)
	case 7:
		if m.any {
			return m.newest - m.span + rnd.Int64N(3) - 1 // the oldest accepted time
		}
	case 8:
		if m.any {
			return m.newest + m.ahead + rnd.Int64N(3) - 1 // the newest accepted time
		}
	}
	return t
}

func (m *recentModel) compare(t *testing.T, r *Recent[int], at int64) {
	t.Helper()
	when := time.Unix(0, at)
	want := m.window(at)
	if got := r.AppendAt(when, nil); !slices.Equal(got, want) || r.LenAt(when) != len(want) {
		t.Errorf("at %d: %v, %d; want %v", at, got, r.LenAt(when), want)
	}
	// Unused entries hold no value, so that what it points to is freed.
	for i := r.n; i < len(r.ring); i++ {
		if *r.at(i) != (recentEvent[int]{}) {
			t.Errorf("place %d of %d, not in use, holds %+v", i, len(r.ring), *r.at(i))
		}
	}
}

// Values that have left the window are released.
func TestRecentFrees(t *testing.T) {
	r := mustRecent[*[1 << 16]byte](t, RecentConfig{Span: time.Second, Max: 64})
	freed := make(chan int, 3)
	at := time.Unix(1000, 0)
	for i := range 3 {
		big := new([1 << 16]byte)
		runtime.AddCleanup(big, func(i int) { freed <- i }, i)
		r.AddAt(at.Add(time.Duration(i)*time.Millisecond), big)
	}
	r.AddAt(at.Add(time.Second), nil) // the first is out
	runtime.GC()
	if got := <-freed; got != 0 {
		t.Errorf("event %d was freed first", got)
	}
	if got := r.ExpireAt(at.Add(time.Hour)); got != 3 {
		t.Errorf("%d expired, want 3", got)
	}
	runtime.GC()
	if a, b := <-freed, <-freed; a+b != 3 {
		t.Errorf("freed %d and %d", a, b)
	}
	runtime.KeepAlive(r)
}

func TestRecentTimesAtTheEnds(t *testing.T) {
	for _, span := range []time.Duration{time.Millisecond, MaxSpan} {
		for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0), time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64), time.Unix(0, 0)} {
			r := mustRecent[int](t, RecentConfig{Span: span, Ahead: MaxSpan})
			if !r.AddAt(at, 3) || r.LenAt(at) != 1 {
				t.Errorf("%v at %v: %d events, want 1", span, at, r.LenAt(at))
			}
			r.Add(1)
			r.AddAt(time.Unix(1<<40, 0), 1)
			r.AddAt(time.Unix(1<<40, 0), 1)
			if r.LenAt(time.Unix(1<<40, 0)) == 0 {
				t.Errorf("%v at %v: no event at the end of time", span, at)
			}
		}
	}
}

// Writers and readers together: every event in the window is there once, and all others were dropped.
func TestRecentConcurrent(t *testing.T) {
	const writers, adds, most = 4, 2000, 3000
	r := mustRecent[int](t, RecentConfig{Span: time.Hour, Max: most})
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			for i := range adds {
				if !r.Add(writer*adds + i) {
					t.Error("an event was refused")
				}
				if i%100 == 0 {
					last := time.Time{}
					for _, e := range r.Append(nil) {
						if e.Time.Before(last) {
							t.Errorf("an event of %v after one of %v", e.Time, last)
						}
						last = e.Time
					}
				}
			}
		})
	}
	wg.Wait()
	// The kept events are the newest: the last events of each writer.
	var next [writers]int
	for _, e := range r.Append(nil) {
		writer, i := e.Value/adds, e.Value%adds
		if next[writer] != 0 && i != next[writer] {
			t.Errorf("event %d of writer %d after event %d", i, writer, next[writer]-1)
		}
		next[writer] = i + 1
	}
	for writer, n := range next {
		if n != 0 && n != adds {
			t.Errorf("the last event of writer %d is %d, want %d or none", writer, n-1, adds-1)
		}
	}
	if r.Len() != most || r.Stats().Dropped != writers*adds-most {
		t.Errorf("%d kept, %d dropped; want %d, %d", r.Len(), r.Stats().Dropped, most, writers*adds-most)
	}
}

func TestRecentNoAllocations(t *testing.T) {
	r := mustRecent[int](t, RecentConfig{Span: time.Second, Max: 256})
	at := time.Unix(1e9, 0)
	for range 300 {
		r.AddAt(at, 1)
	}
	dst := make([]Event[int], 0, 256)
	for name, do := range map[string]func(){
		"AddAt":       func() { at = at.Add(time.Millisecond); r.AddAt(at, 1) },
		"AddAt early": func() { r.AddAt(at.Add(-time.Second/2), 1) },
		"AddAt idle":  func() { at = at.Add(time.Hour); r.AddAt(at, 1) },
		"AddAt late":  func() { r.AddAt(time.Unix(0, 0), 1) },
		"AppendAt":    func() { r.AppendAt(at, dst) },
		"LenAt":       func() { r.LenAt(at) },
		"figures":     func() { _ = r.Stats().Dropped + r.Stats().Refused + r.Stats().Late + r.Stats().Future },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	live := mustRecent[int](t, RecentConfig{Span: time.Minute, Max: 16})
	for range 20 {
		live.Add(1)
	}
	if n := testing.AllocsPerRun(100, func() { live.Add(1); live.Len() }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}
