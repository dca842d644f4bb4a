package hotkey_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// thrice makes a key hot at its third event in a minute.
func thrice(t *testing.T) hotkey.Rule {
	key := must.Get(match.NewKey(match.Fold{}, "path"))(t)
	return hotkey.Rule{Name: "r", Key: key, Threshold: 3, Span: time.Minute}
}

// Keys of all lengths are counted exactly, also those that differ in their last byte only, and an edge has the key in full.
func TestLongKeys(t *testing.T) {
	d := mustDetector(t, thrice(t))
	for _, length := range []int{255, 256, 257, 60_000} {
		a, b := strings.Repeat("k", length-1)+"a", strings.Repeat("k", length-1)+"b"
		for i := range 3 {
			edge, ok := addKey(d, at(1000), "r", a)
			if ok != (i == 2) || ok && edge.Key != a {
				t.Errorf("%d bytes, event %d: edge %t of a key of %d bytes", length, i+1, ok, len(edge.Key))
			}
		}
		if _, ok := addKey(d, at(1000), "r", b); ok || isHotAt(d, at(1000), "r", b) || !isHotAt(d, at(1000), "r", a) {
			t.Errorf("%d bytes: keys that differ in the last byte are taken for one", length)
		}
	}
	if under(d, "r").Stats().Keys != 8 {
		t.Errorf("%d keys, want 8", under(d, "r").Stats().Keys)
	}
}

// The count of a long key survives a restart.
func TestLongKeysAfterARestart(t *testing.T) {
	r := thrice(t)
	d, next := mustDetector(t, r), mustDetector(t, r)
	hot, warm := strings.Repeat("h", 5000), strings.Repeat("w", 5000)
	for range 2 {
		addKey(d, at(1000), "r", hot)
		addKey(d, at(1000), "r", warm)
	}
	addKey(d, at(1000), "r", hot)
	for chunk := range d.ExportAt(at(2000)) {
		must.Get(next.ImportAt(at(2000), chunk))(t)
	}
	if !isHotAt(next, at(3000), "r", hot) || isHotAt(next, at(3000), "r", warm) {
		t.Error("after a restart other keys are hot")
	}
	if edge, ok := addKey(next, at(3000), "r", warm); !ok || edge.Key != warm {
		t.Errorf("no edge at the third event, two of them before a restart: %t", ok)
	}
}

// Many long keys take no more memory than short ones, and Bytes reports it.
func TestMemoryOfLongKeys(t *testing.T) {
	const keys = 4000
	before := heap()
	d := mustDetector(t, thrice(t))
	path := []byte(strings.Repeat("p", 60_000))
	for i := range keys {
		addKey(d, at(1000), "r", string(fmt.Appendf(path[:0:cap(path)], "%08d", i)[:60_000]))
	}
	used, said := heap()-before, under(d, "r").Stats().Bytes
	if under(d, "r").Stats().Keys != keys || said > keys*300 {
		t.Errorf("%d keys take %d bytes", under(d, "r").Stats().Keys, said)
	}
	if used > said*12/10+64<<10 || said > used*12/10+64<<10 {
		t.Errorf("%d bytes are used, Bytes says %d", used, said)
	}
	runtime.KeepAlive(d)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
