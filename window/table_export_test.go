package window

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/test/randtest"
)

func exportedTable(tb *Table, t time.Time) (chunks [][]byte) {
	for chunk := range tb.ExportAt(t) {
		chunks = append(chunks, bytes.Clone(chunk))
	}
	return chunks
}

func mustImportTable(t testing.TB, tb *Table, at time.Time, chunks [][]byte) (all Imported) {
	t.Helper()
	for i, chunk := range chunks {
		did, err := tb.ImportAt(at, chunk)
		if err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
		all.Add(did)
	}
	return all
}

// A tableRestart is a table, and one that takes over its counts every so often, as
// a process that is started again would.
type tableRestart struct {
	t       *testing.T
	rnd     *rand.Rand
	config  TableConfig
	windows []Window
	a, b    *Table
	now     int64
	keys    []string
	fault   func(chunk []byte)
}

func (x *tableRestart) key() string { return x.keys[x.rnd.IntN(len(x.keys))] }

// step moves on by up to some spans, now and then by none.
func (x *tableRestart) step() {
	w := x.windows[x.rnd.IntN(len(x.windows))]
	x.now += []int64{0, x.rnd.Int64N(1000), x.rnd.Int64N(int64(w.Slot)), x.rnd.Int64N(int64(w.Slot) * 20), x.rnd.Int64N(2 * int64(w.Span))}[x.rnd.IntN(5)]
}

// same compares what both tables store for a key, and returns how they differ.
func (x *tableRestart) same(key string) string {
	t := time.Unix(0, x.now)
	for _, w := range x.windows {
		for _, span := range []time.Duration{w.Span, w.Slot, w.Span/2 + 1} {
			a, err := x.a.CountAt(t, key, span)
			b, err2 := x.b.CountAt(t, key, span)
			if a != b || err != nil || err2 != nil {
				return fmt.Sprintf("at %d in %v of %+v, %q has %+v and %+v", x.now, span, w, key, a, b)
			}
		}
	}
	return ""
}

func (x *tableRestart) restart() Imported {
	x.b = mustTable(x.t, x.config, x.windows...)
	chunks := exportedTable(x.a, time.Unix(0, x.now))
	if x.fault != nil {
		for _, chunk := range chunks {
			x.fault(chunk)
		}
	}
	var all Imported
	for _, chunk := range chunks {
		did, err := x.b.ImportAt(time.Unix(0, x.now), chunk)
		if err != nil && x.fault == nil {
			x.t.Fatal(err)
		}
		all.Add(did)
	}
	return all
}

// run compares for some rounds, and returns the first difference.
func (x *tableRestart) run(rounds int) string {
	x.a = mustTable(x.t, x.config, x.windows...)
	for range rounds {
		for range 1 + x.rnd.IntN(60) {
			x.step()
			n := x.rnd.Uint64N(1 << x.rnd.IntN(40))
			if x.rnd.IntN(3) == 0 {
				n = 1
			}
			late := x.now - x.rnd.Int64N(int64(x.windows[0].Span))
			x.a.AddAt(time.Unix(0, late), x.key(), n)
		}
		if did := x.restart(); x.fault == nil && did.Kept+did.Refused != 0 {
			x.t.Fatalf("import into an empty table: %+v", did)
		}
		for range 60 {
			key := x.key()
			if differs := x.same(key); differs != "" {
				return differs
			}
			x.step()
			at, n := time.Unix(0, x.now-x.rnd.Int64N(int64(x.windows[0].Span))), x.rnd.Uint64N(1<<x.rnd.IntN(20))
			if x.a.AddAt(at, key, n) != x.b.AddAt(at, key, n) {
				return fmt.Sprintf("an add of %d to %q is refused by one of both", n, key)
			}
			if differs := x.same(key); differs != "" {
				return differs
			}
		}
	}
	return ""
}

func newTableRestart(t *testing.T, rnd *rand.Rand) *tableRestart {
	x := &tableRestart{t: t, rnd: rnd, now: []int64{1_700_000_000e9, -1e18, 0}[rnd.IntN(3)] + rnd.Int64N(1e15)}
	all := []Window{
		{Span: time.Second, Slot: time.Second},
		{Span: 10 * time.Second, Slot: time.Second},
		{Span: time.Minute, Slot: time.Second},
		{Span: time.Hour, Slot: time.Minute},
		{Span: 24 * time.Hour, Slot: time.Hour},
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	x.windows = all[:1+rnd.IntN(len(all))]
	for i := range 30 {
		x.keys = append(x.keys, fmt.Sprint("k", i))
	}
	x.keys = append(x.keys, "", string(make([]byte, MaxTableKey)), "a key of more than fifteen bytes")
	return x
}

// TestTableImportContinues compares a table with one that is restarted over
// and over: every read at a later time, of every span, and every add.
func TestTableImportContinues(t *testing.T) {
	rounds := 60
	switch {
	case longTests():
		rounds = 5000
	case testing.Short():
		rounds = 10
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	full := 0
	for range rounds {
		x := newTableRestart(t, rnd)
		if differs := x.run(4); differs != "" {
			t.Fatalf("%s\n%+v", differs, x.windows)
		}
		full += x.b.Stats().Full
	}
	if full == 0 {
		t.Error("no record of 64-bit slots: the test has no teeth")
	}
}

// TestTableFaultyImportIsCaught does so with one changed byte in each chunk.
func TestTableFaultyImportIsCaught(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	caught := 0
	for range 30 { // two in three are caught, by the seed of the hashes
		x := newTableRestart(t, rnd)
		x.fault = func(chunk []byte) {
			chunk[len(chunk)-5] ^= 1 // before the checksum
			copy(chunk, sealed(chunk))
		}
		if x.run(4) != "" {
			caught++
		}
	}
	if caught < 5 {
		t.Errorf("%d of 30 were caught", caught)
	}
}

// TestTableImportTwice imports into a table that has counts already, and into one with too little memory.
func TestTableImportTwice(t *testing.T) {
	w := Window{Span: time.Minute, Slot: time.Second}
	a := mustTable(t, TableConfig{}, w)
	const n = 10_000
	for i := range n {
		a.AddAt(time.Unix(100, 0), fmt.Sprint(i), uint64(1+i%3))
	}
	chunks := exportedTable(a, time.Unix(100, 0))
	b := mustTable(t, TableConfig{}, w)
	first, second := mustImportTable(t, b, time.Unix(100, 0), chunks), mustImportTable(t, b, time.Unix(100, 0), chunks)
	if first != (Imported{Keys: n}) || second != (Imported{Kept: n}) {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if sum := b.SumAt(time.Unix(100, 0), "5"); sum != 3 {
		t.Errorf("sum %d, want 3", sum)
	}
	late := mustImportTable(t, mustTable(t, TableConfig{}, w), time.Unix(200, 0), chunks)
	if late != (Imported{Expired: n}) {
		t.Errorf("imported later: %+v", late)
	}
	for _, refuse := range []bool{false, true} {
		small := mustTable(t, TableConfig{Budget: 512 << 10, RefuseNew: refuse}, w)
		did := mustImportTable(t, small, time.Unix(100, 0), chunks)
		s := small.Stats()
		if s.Bytes > s.Budget || s.Keys == 0 || refuse != (did.Refused > 0) || did.Keys+did.Refused != n || refuse == (s.Evicted > 0) {
			t.Errorf("refuse %t: %+v, %+v", refuse, did, s)
		}
	}
}

// TestTableImportIntoOtherWindows changes the windows: a window with the same slots gets the counts, others nothing.
func TestTableImportIntoOtherWindows(t *testing.T) {
	a := mustTable(t, TableConfig{}, Window{Span: time.Minute, Slot: time.Second}, Window{Span: time.Hour, Slot: time.Minute})
	for s := range int64(100) {
		a.AddAt(time.Unix(1000+s, 0), "k", 1)
	}
	b := mustTable(t, TableConfig{}, Window{Span: 10 * time.Second, Slot: time.Second}, Window{Span: 2 * time.Hour, Slot: time.Minute}, Window{Span: 24 * time.Hour, Slot: time.Hour})
	mustImportTable(t, b, time.Unix(1099, 0), exportedTable(a, time.Unix(1099, 0)))
	for span, want := range map[time.Duration]uint64{10 * time.Second: 10, 2 * time.Hour: 100, 24 * time.Hour: 0} {
		if c, err := b.CountAt(time.Unix(1099, 0), "k", span); c.Lo != want || err != nil {
			t.Errorf("%v: %+v, %v, want %d", span, c, err, want)
		}
	}
	c := mustTable(t, TableConfig{}, Window{Span: time.Minute, Slot: 2 * time.Second})
	if did := mustImportTable(t, c, time.Unix(1099, 0), exportedTable(a, time.Unix(1099, 0))); did != (Imported{Expired: 1}) {
		t.Errorf("into other slots: %+v", did)
	}
}

// TestTableImportAfterClockWasSetBack imports an hour before: all counts now, and
// has left when the window has passed.
func TestTableImportAfterClockWasSetBack(t *testing.T) {
	for _, w := range []Window{{Span: time.Minute, Slot: time.Second}, {Span: time.Minute, Slot: time.Minute}} {
		a := mustTable(t, TableConfig{}, w)
		for s := range int64(30) {
			a.AddAt(time.Unix(7200+s, 0), "k", 40_000)
		}
		b := mustTable(t, TableConfig{}, w)
		mustImportTable(t, b, time.Unix(3600, 0), exportedTable(a, time.Unix(7230, 0)))
		if sum := b.SumAt(time.Unix(3600, 0), "k"); sum != 1_200_000 {
			t.Errorf("%v: sum %d", w, sum)
		}
		if _, hi := b.BoundsAt(time.Unix(3600+121, 0), "k"); hi != 0 {
			t.Errorf("%v: two minutes later %d", w, hi)
		}
		if !b.AddAt(time.Unix(3601, 0), "other", 1) {
			t.Errorf("%v: an add is refused as late", w)
		}
	}
}

// TestConcurrentTableExportWhileAddsGoOn exports while others add: each key has at least the adds that ended before the
// export, and at most those that began before its end.
func TestConcurrentTableExportWhileAddsGoOn(t *testing.T) {
	w := Window{Span: time.Hour, Slot: time.Minute}
	a := mustTable(t, TableConfig{}, w)
	const keys = 50
	var begun, done [keys]atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for g := range 2 {
		wg.Go(func() {
			for i := g; !stop.Load(); i++ {
				begun[i%keys].Add(1)
				a.AddAt(time.Unix(0, 0), fmt.Sprint(i%keys), 1)
				a.AddAt(time.Unix(0, 0), fmt.Sprint("more ", i%1000), 1) // pages grow
				done[i%keys].Add(1)
			}
		})
	}
	for range 4 {
		var before [keys]uint64
		for k := range before {
			before[k] = done[k].Load()
		}
		b := mustTable(t, TableConfig{Budget: 128 << 20}, w)
		mustImportTable(t, b, time.Unix(0, 0), exportedTable(a, time.Unix(0, 0)))
		for k := range keys {
			if sum := b.SumAt(time.Unix(0, 0), fmt.Sprint(k)); sum < before[k] || sum > begun[k].Load() {
				t.Fatalf("key %d: %d of %d to %d", k, sum, before[k], begun[k].Load())
			}
		}
	}
}

func sampleTable(t testing.TB) (*Table, []byte) {
	tb := mustTable(t, TableConfig{}, Window{Span: time.Second, Slot: time.Second}, Window{Span: time.Minute, Slot: time.Second}, Window{Span: time.Hour, Slot: time.Minute})
	for i := range int64(200) {
		tb.AddAt(time.Unix(1000+i, 0), fmt.Sprint("key ", i%9), uint64(i*i*i))
	}
	for chunk := range tb.ExportAt(time.Unix(1200, 0)) {
		return tb, bytes.Clone(chunk)
	}
	return nil, nil
}

// importAnyTable imports any bytes; exporting and restoring the result again
// gives the same.
func importAnyTable(t *testing.T, like *Table, chunk []byte) {
	for _, now := range []time.Time{time.Unix(1100, 0), time.Unix(1201, 0)} {
		a, b := mustTable(t, TableConfig{Budget: 8 << 20}, like.Windows()...), mustTable(t, TableConfig{Budget: 8 << 20}, like.Windows()...)
		did, _ := a.ImportAt(now, chunk)
		if did == (Imported{}) {
			continue
		}
		if again := mustImportTable(t, b, now, exportedTable(a, now)); again.Keys > a.Len() || again.Kept+again.Refused > 0 {
			t.Errorf("%+v, and then %+v of %d", did, again, a.Len())
		}
		for key, r := range a.AllAt(now) {
			span := a.longest().window.Span
			want, _ := r.Count(span)
			if got, _ := b.CountAt(now, key, span); got != want {
				t.Errorf("%q: %+v, and then %+v", key, want, got)
			}
		}
	}
}

// sealed returns a chunk, whose last bytes are taken for its checksum, with the
// right one.
func sealed(chunk []byte) []byte {
	return snapshot.Seal(bytes.Clone(chunk[:max(0, len(chunk)-4)]))
}

// TestTableImportOfTornChunks cuts a chunk at every byte, and flips a bit in each, without and with the correct checksum.
func TestTableImportOfTornChunks(t *testing.T) {
	like, chunk := sampleTable(t)
	step := 1
	if !longTests() {
		step += len(chunk) / 40
	}
	for n := 0; n < len(chunk); n += step {
		importAnyTable(t, like, chunk[:n])
		importAnyTable(t, like, sealed(chunk[:n]))
		again := bytes.Clone(chunk)
		again[n] ^= 1 << (n % 8)
		if did, err := like.ImportAt(time.Unix(1200, 0), again); err == nil || did != (Imported{}) {
			t.Errorf("byte %d is another: %+v, %v", n, did, err)
		}
		importAnyTable(t, like, sealed(again))
	}
	if _, err := like.ImportAt(time.Unix(1200, 0), chunk[:len(chunk)-1]); err == nil {
		t.Error("a chunk without its last byte is accepted")
	}
	if _, err := like.ImportAt(time.Unix(1200, 0), []byte{9, 0}); err == nil {
		t.Error("another version is accepted")
	}
}

func FuzzTableImport(f *testing.F) {
	like, chunk := sampleTable(f)
	f.Add(chunk)
	f.Fuzz(func(t *testing.T, chunk []byte) {
		importAnyTable(t, like, chunk)
		importAnyTable(t, like, sealed(chunk))
	})
}

func ExampleTable_ExportAt() {
	w := Window{Span: time.Minute, Slot: time.Second}
	before, _ := NewTable(TableConfig{}, w)
	before.Add("192.0.2.1", 3)
	var file [][]byte
	for chunk := range before.ExportAt(time.Now()) {
		file = append(file, bytes.Clone(chunk))
	}

	after, _ := NewTable(TableConfig{}, w)
	for _, chunk := range file {
		if _, err := after.ImportAt(time.Now(), chunk); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(after.Sum("192.0.2.1"))
	// Output: 3
}

// BenchmarkTableExport exports and imports a million keys.
func BenchmarkTableExport(b *testing.B) {
	for _, windows := range [][]Window{
		{{Span: time.Minute, Slot: time.Second}},
		{{Span: time.Second}, {Span: time.Minute}, {Span: time.Hour}, {Span: 24 * time.Hour}},
	} {
		config := TableConfig{Budget: 4 << 30}
		tb := mustTable(b, config, windows...)
		for i := range int64(3_000_000) {
			tb.AddAt(time.Unix(1000+i/1e6, 0), fmt.Sprint("203.0.", i%1_000_000), 1)
		}
		now := time.Unix(1003, 0)
		b.Run(fmt.Sprint("export/windows ", len(windows)), func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = 0
				for chunk := range tb.ExportAt(now) {
					size += len(chunk)
				}
			}
			b.ReportMetric(float64(size)/1e6, "B/key")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/key")
		})
		chunks := exportedTable(tb, now)
		b.Run(fmt.Sprint("import/windows ", len(windows)), func(b *testing.B) {
			for b.Loop() {
				mustImportTable(b, mustTable(b, config, windows...), now, chunks)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/key")
		})
	}
}
