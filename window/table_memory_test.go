package window

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// heapNow returns the size of the reachable heap. The first collections free what earlier tests have left in pools.
func heapNow() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The heap must not exceed the budget and a twentieth, whatever comes: keys of all lengths, windows that pass, counts that
// need larger records.
func TestTableBudgetAsMeasured(t *testing.T) {
	steps := 200_000
	if testing.Short() {
		steps = 40_000
	}
	budget := int64(20 * steps)
	for _, x := range []struct {
		c       TableConfig
		windows []Window
	}{
		{TableConfig{Budget: budget}, []Window{{Span: time.Minute, Slot: time.Minute}}},
		{TableConfig{Budget: budget, RefuseNew: true}, []Window{{Span: time.Minute, Slot: 6 * time.Second}}},
		{TableConfig{Budget: 2 * budget}, []Window{Last(time.Second), Last(time.Minute), Last(time.Hour), Last(24 * time.Hour)}},
	}[:configurations(3)] {
		before := heapNow()
		tb := mustTable(t, x.c, x.windows...)
		most, atMost := int64(0), int64(0)
		buf := make([]byte, 0, 2000)
		rnd := randtest.Seed(t)
		for i := range steps {
			rnd = rnd*6364136223846793005 + 1442695040888963407
			buf = strconv.AppendUint(buf[:0], rnd>>33, 36)
			if i/(steps/5)%2 == 1 { // a fifth of long keys, and again
				buf = append(buf, strings.Repeat("y", int(rnd>>56))...)
			}
			at := time.Unix(1000, int64(i)*int64(4*time.Minute)/int64(steps))
			tb.AddAt(at, string(buf), 1+(rnd>>40)%3*(rnd>>60)*10_000)
			if (i+1)%(steps/16) == 0 {
				most = max(most, heapNow()-before)
				atMost = max(atMost, tb.Stats().Bytes)
			}
		}
		s := tb.Stats()
		t.Logf("heap at most %.3f, accounted at most %.3f of the budget; %+v", float64(most)/float64(s.Budget), float64(atMost)/float64(s.Budget), s)
		if atMost > s.Budget || most > s.Budget*105/100 {
			t.Errorf("%d accounted, %d measured, budget %d", atMost, most, s.Budget)
		}
		if most < s.Budget*3/4 {
			t.Errorf("%d measured of %d: the test does not reach the budget", most, s.Budget)
		}
		runtime.KeepAlive(tb)
	}
}

// configurations returns how many of n a test tries.
func configurations(n int) int {
	if testing.Short() {
		return 1
	}
	return n
}

// The documented bytes for a key of 11 bytes, as accounted and as measured.
func TestTableBytesPerKey(t *testing.T) {
	keys := 300_000
	if testing.Short() {
		keys = 50_000
	}
	hours := []Window{Last(time.Second), Last(time.Minute), Last(time.Hour), Last(24 * time.Hour)}
	ten := []Window{
		{Span: time.Second, Slot: 100 * time.Millisecond},
		{Span: time.Minute, Slot: 6 * time.Second},
		{Span: time.Hour, Slot: 6 * time.Minute},
		{Span: 24 * time.Hour, Slot: 144 * time.Minute},
	}
	for _, x := range []struct {
		windows    []Window
		mean, most float64 // over a doubling of the keys
	}{
		{[]Window{{Span: time.Minute, Slot: time.Minute}}, 48, 59},
		{[]Window{{Span: time.Minute, Slot: 6 * time.Second}}, 72, 86},
		{[]Window{Last(time.Minute)}, 230, 265},
		{ten, 185, 210},
		{hours, 850, 920},
	}[:configurations(5)] {
		budget := int64(float64(keys) * x.most * 1.5)
		before := heapNow()
		tb := mustTable(t, TableConfig{Budget: budget}, x.windows...)
		at := time.Unix(1000, 0)
		buf := make([]byte, 0, 32)
		least, most, sum := math.Inf(1), 0.0, 0.0
		for i := range keys {
			tb.AddAt(at, string(benchKey(buf, uint32(i))), 1)
			if i >= keys/2 && i%100 == 0 {
				b := float64(tb.Stats().Bytes) / float64(i+1)
				least, most, sum = min(least, b), max(most, b), sum+b
			}
		}
		mean := sum / float64(keys/200)
		heap := float64(heapNow()-before) / float64(keys)
		s := tb.Stats()
		accounted := float64(s.Bytes) / float64(keys)
		t.Logf("%d windows of %d slots: %.1f bytes a key accounted, %.1f measured; %.1f to %.1f, on average %.1f, while growing to %d keys",
			len(x.windows), x.windows[0].Slots(), accounted, heap, least, most, mean, keys)
		if s.Keys != keys || mean > x.mean || most > x.most || heap > accounted*1.05 || heap < accounted*0.8 {
			t.Errorf("%d windows: %.1f accounted, %.1f at most, %.1f on average, %.1f measured; %+v", len(x.windows), accounted, most, mean, heap, s)
		}
		runtime.KeepAlive(tb)
	}
}

func TestTableNoAllocations(t *testing.T) {
	for _, windows := range [][]Window{{{Span: time.Second, Slot: time.Second}}, {Last(time.Second)}, {Last(time.Second), Last(time.Minute)}} {
		tb := mustTable(t, TableConfig{Budget: 1 << 20}, windows...)
		key, i := []byte("a key"), uint32(0)
		at := time.Now()
		for tb.Stats().Evicted == 0 {
			i++
			tb.AddAt(at, string(benchKey(key, i)), 1)
		}
		tb.Add("hot", 1<<40)
		for name, do := range map[string]func(){
			"Add":        func() { tb.Add("a key", 1) },
			"Add full":   func() { tb.Add("hot", 1) },
			"AddAt":      func() { at = at.Add(time.Millisecond); tb.AddAt(at, "a key", 1) },
			"AddAt late": func() { tb.AddAt(time.Unix(0, 0), "a key", 1) },
			"AddSum":     func() { tb.AddSum("a key", 1) },
			"AddSumAt":   func() { tb.AddSumAt(at, "7", 1) },
			"Sum":        func() { tb.Sum("a key") },
			"Count":      func() { _, _ = tb.Count("7", time.Second) },
			"CountAt":    func() { _, _ = tb.CountAt(at, "a key", time.Second/2) },
			"Bounds":     func() { tb.Bounds("nothing") },
			"Estimate":   func() { tb.Estimate("a key") },
			"Remove":     func() { tb.Remove("a key"); tb.Add("a key", 1) },
			"Stats":      func() { tb.Stats() },
		} {
			if n := testing.AllocsPerRun(100, do); n != 0 {
				t.Errorf("%d windows: %s allocates %v times", len(windows), name, n)
			}
		}
	}
}
