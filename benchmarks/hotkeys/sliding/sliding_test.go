// Package sliding is a module of its own: with it the rows of package hotkeys are
// measured beside the sliding HeavyKeeper of keilerkonzept/topk, which not every module
// proxy serves.
package sliding

import (
	"flag"
	"runtime"
	"testing"

	topk "github.com/keilerkonzept/topk/sliding"

	"github.com/lately-go/lately/benchmarks/hotkeys"
)

var numbers = flag.String("numbers", "10000,1000000", "how many keys there are")

// newSliding returns a sketch of ten ticks with 8,192 buckets in each of four rows, which
// is 2.6 MB. Its user calls Tick every fifth of a second for a window of two; that is
// not measured.
func newSliding(k, _ int, shared bool) hotkeys.Counter {
	s := topk.New(k, 10, topk.WithWidth(8192), topk.WithDepth(4))
	return hotkeys.Locked(shared, func(key string) { s.Incr(key) }, func(key string) uint64 { return uint64(s.Count(key)) })
}

func rows() []hotkeys.Row {
	return append(hotkeys.Rows(), hotkeys.Row{Name: "keilerkonzept", New: newSliding})
}

func TestRows(t *testing.T) { hotkeys.Test(t, rows()) }

func BenchmarkHotKeys(b *testing.B) { hotkeys.Bench(b, rows(), *numbers, runtime.GOMAXPROCS(0)) }
