package hotkey_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/window"
)

// dumpNames are the rules of dumpRules.
var dumpNames = [...]string{"few", "many", "one"}

func dumpRules(t testing.TB, change func(r *hotkey.Rule)) []hotkey.Rule {
	key := must.Get(match.NewKey(match.Fold{}, "path"))(t)
	rules := []hotkey.Rule{
		{Name: "few", Key: key, Threshold: 3, Span: time.Second, Hold: 5 * time.Second},
		{Name: "many", Key: key, Threshold: 200, Span: time.Minute},
		{Name: "one", Key: key, Threshold: 1, Span: time.Millisecond},
	}
	if change != nil {
		change(&rules[0])
	}
	return rules
}

func restartedDetector(t testing.TB, rules []hotkey.Rule) *hotkey.Detector {
	d := must.Get(hotkey.NewDetector(rules, hotkey.DetectorConfig{}))(t)
	return d
}

func exported(d *hotkey.Detector, t time.Time) (chunks [][]byte) {
	for chunk := range d.ExportAt(t) {
		chunks = append(chunks, bytes.Clone(chunk))
	}
	return chunks
}

func mustImport(t testing.TB, d *hotkey.Detector, at time.Time, chunks [][]byte) (all window.Imported) {
	t.Helper()
	for _, chunk := range chunks {
		did := must.Get(d.ImportAt(at, chunk))(t)
		all.Add(did)
	}
	return all
}

// compare sends events to two detectors; the second is restarted every so often from its chunks, changed by fault. It
// returns how they differ, if they do, and the edges.
func compare(t testing.TB, rnd *rand.Rand, events int, fault func([][]byte) [][]byte) (differs string, edges int) {
	set := dumpRules(t, nil)
	a, b := restartedDetector(t, set), restartedDetector(t, set)
	now := int64(1_700_000_000e9)
	every := 1 + rnd.IntN(events/3)
	for i := range events {
		now += rnd.Int64N(1 << rnd.IntN(34))
		at, rule, key := time.Unix(0, now), dumpNames[rnd.IntN(3)], fmt.Sprint("/", min(rnd.IntN(40), rnd.IntN(40)))
		ea, hotA := addKey(a, at, rule, key)
		eb, hotB := addKey(b, at, rule, key)
		if ea != eb || hotA != hotB {
			return fmt.Sprintf("event %d, restarted every %d: %+v and %+v", i, every, ea, eb), edges
		}
		if hotA {
			edges++
		}
		if i%every == 0 {
			b = restartedDetector(t, set)
			if did := mustImport(t, b, at, fault(exported(a, at))); did.Kept+did.Unknown > 0 {
				t.Fatalf("import into an empty detector: %+v", did)
			}
		}
	}
	return "", edges
}

// TestImportContinues finds the same edges after restarts as without.
func TestImportContinues(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	all := 0
	for range 30 {
		differs, edges := compare(t, rnd, 2000, func(c [][]byte) [][]byte { return c })
		if differs != "" {
			t.Fatal(differs)
		}
		all += edges
	}
	if all < 100 {
		t.Errorf("%d edges: the test has no teeth", all)
	}
	if differs, _ := compare(t, rnd, 2000, func([][]byte) [][]byte { return nil }); differs == "" {
		t.Error("nobody notices that all is lost")
	}
}

// TestImportUnlikeBefore imports twice, under other rules, and with a clock that
// was set back.
func TestImportUnlikeBefore(t *testing.T) {
	a := restartedDetector(t, dumpRules(t, nil))
	for range 3 {
		addKey(a, time.Unix(100, 0), "few", "hot")
	}
	addKey(a, time.Unix(100, 0), "few", "warm")
	addKey(a, time.Unix(100, 0), "few", "warm")
	chunks := exported(a, time.Unix(100, 0))

	b := restartedDetector(t, dumpRules(t, nil))
	first, second := mustImport(t, b, time.Unix(100, 0), chunks), mustImport(t, b, time.Unix(100, 0), chunks)
	if first != (window.Imported{Keys: 2}) || second != (window.Imported{Kept: 2}) {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if did := mustImport(t, restartedDetector(t, dumpRules(t, nil)), time.Unix(200, 0), chunks); did != (window.Imported{Keys: 1, Expired: 1}) {
		t.Errorf("later: %+v", did)
	}
	renamed := dumpRules(t, func(r *hotkey.Rule) { r.Name = "other" })
	if did := mustImport(t, restartedDetector(t, renamed), time.Unix(100, 0), chunks); did != (window.Imported{Unknown: 2}) {
		t.Errorf("under another name: %+v", did)
	}

	wider := restartedDetector(t, dumpRules(t, func(r *hotkey.Rule) { r.Threshold = 4 }))
	mustImport(t, wider, time.Unix(100, 0), chunks)
	if _, hot := addKey(wider, time.Unix(100, 0), "few", "warm"); hot {
		t.Error("the third of four")
	}
	if _, hot := addKey(wider, time.Unix(100, 0), "few", "warm"); !hot {
		t.Error("not the fourth of four")
	}

	back := restartedDetector(t, dumpRules(t, nil))
	mustImport(t, back, time.Unix(50, 0), chunks)
	if !isHotAt(back, time.Unix(54, 0), "few", "hot") || isHotAt(back, time.Unix(55, 0), "few", "hot") {
		t.Error("a hold of five seconds, fifty seconds before")
	}
	if _, hot := addKey(back, time.Unix(50, 1), "few", "warm"); !hot {
		t.Error("not the third of three, fifty seconds before")
	}
}

// FuzzImport imports any bytes; the result can be exported and restored again.
func FuzzImport(f *testing.F) {
	set := dumpRules(f, nil)
	d := restartedDetector(f, set)
	for i := range int64(500) {
		addKey(d, time.Unix(100, i), dumpNames[i%3], fmt.Sprint("/", i%7))
	}
	for _, chunk := range exported(d, time.Unix(100, 0)) {
		f.Add(chunk)
		f.Add(chunk[:len(chunk)/2])
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		for _, at := range []time.Time{time.Unix(99, 0), time.Unix(101, 0)} {
			a, b := restartedDetector(t, set), restartedDetector(t, set)
			a.ImportAt(at, chunk)
			a.ImportAt(at, snapshot.Seal(bytes.Clone(chunk[:max(0, len(chunk)-4)])))
			mustImport(t, b, at, exported(a, at))
		}
	})
}

func ExampleDetector_ExportAt() {
	key, _ := match.NewKey(match.Fold{}, "path")
	rule := hotkey.Rule{Name: "page", Key: key, Threshold: 3, Span: time.Minute}
	before, _ := hotkey.New(rule)
	now := time.Now()
	pages, _ := before.Rule("page")
	_, _, _ = pages.AddAt(now, "/news", 2)

	after, _ := hotkey.New(rule)
	for chunk := range before.ExportAt(now) { // usually by way of a file
		if _, err := after.ImportAt(now, chunk); err != nil {
			fmt.Println(err)
		}
	}
	pages, _ = after.Rule("page")
	_, hot, _ := pages.AddAt(now, "/news", 1)
	fmt.Println(hot)
	// Output: true
}

// TestImportOfDamagedChunk changes a bit and cuts: nothing is restored.
func TestImportOfDamagedChunk(t *testing.T) {
	set, at := dumpRules(t, nil), time.Unix(1000, 0)
	a := restartedDetector(t, set)
	for i := range 20 {
		addKey(a, at, "many", fmt.Sprint("/", i))
	}
	chunk := exported(a, at)[0]
	for i := range chunk {
		again := bytes.Clone(chunk)
		again[i] ^= 1 << (i % 8)
		for _, damaged := range [][]byte{chunk[:i], again} {
			d := restartedDetector(t, set)
			if did, err := d.ImportAt(at, damaged); err == nil || did != (window.Imported{}) || under(d, "many").Stats().Keys > 0 {
				t.Fatalf("damaged at %d: %+v, %v", i, did, err)
			}
		}
	}
}

// A chunk has what names its rule beside its 64 KiB: an export ends whatever the
// length of the name.
func TestExportUnderALongName(t *testing.T) {
	set := dumpRules(t, func(r *hotkey.Rule) { r.Name = strings.Repeat("n", 64<<10) })
	d, at := restartedDetector(t, set), time.Unix(1000, 0)
	addKey(d, at, set[0].Name, "k")
	var chunks [][]byte
	for chunk := range d.ExportAt(at) {
		if chunks = append(chunks, bytes.Clone(chunk)); len(chunks) == 2 {
			t.Fatal("two chunks of one key")
		}
	}
	if got := mustImport(t, restartedDetector(t, set), at, chunks); got.Keys != 1 {
		t.Errorf("%+v", got)
	}
}

// Counts in slots go on as before over an export; if the rule has changed to another
// window, their bounds are still true.
func TestImportOfSlots(t *testing.T) {
	rnd := randtest.New(t)
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = 300, time.Second, time.Second
	d, tr := mustDetector(t, r), windowtest.Keys[string]{}
	now := time.Unix(1_700_000_000, 0)
	add := func(d *hotkey.Detector, at time.Time, n uint64, key string) (hotkey.Edge, bool) {
		return addKeyN(d, at, "r", key, n)
	}
	for range 20_000 {
		key, n := fmt.Sprint("k", rnd.IntN(1+rnd.IntN(60))), 1+rnd.Uint64N(3)
		now = now.Add(time.Duration(rnd.Int64N(int64(200 * time.Microsecond))))
		add(d, now, n, key)
		tr.Of(key).Add(now.UnixNano(), n)
	}
	exact := r
	exact.Exact = true
	few := r
	few.Threshold = 20
	for _, rule := range []hotkey.Rule{r, exact, few} {
		back := mustDetector(t, rule)
		for chunk := range d.ExportAt(now) {
			must.Get(back.ImportAt(now, chunk))(t)
		}
		for key := range tr {
			for after := range 5 {
				at := now.Add(time.Duration(after) * 230 * time.Millisecond)
				want, wantHot := under(d, "r").HotAt(at, key)
				got, hot := under(back, "r").HotAt(at, key)
				count := tr.Of(key).In(at.UnixNano(), int64(r.Span))
				if got.Hi < count || got.Lo > want.Hi || rule.Threshold == 300 && !rule.Exact && (got != want || hot != wantHot) {
					t.Fatalf("threshold %d: %s after %d: %+v, %t; want %+v, %t, true %d", rule.Threshold, key, after, got, hot, want, wantHot, count)
				}
			}
		}
		if rule.Threshold != 300 || rule.Exact {
			continue
		}
		same := mustDetector(t, r)
		for chunk := range d.ExportAt(now) {
			must.Get(same.ImportAt(now, chunk))(t)
		}
		for i := range 5000 {
			at, key := now.Add(time.Duration(i)*300*time.Microsecond), fmt.Sprint("k", rnd.IntN(10))
			edge, hot := add(same, at, 1, key)
			if want, wantHot := add(back, at, 1, key); !sameEdge(edge, want) || hot != wantHot {
				t.Fatalf("event %d of %s: %+v, %t; want %+v, %t", i, key, edge, hot, want, wantHot)
			}
		}
	}
}
