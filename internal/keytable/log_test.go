package keytable_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/keytable"
)

// newLogs returns the storage of logs with that bound, and n empty logs in it.
func newLogs(bound, n int) (*keytable.Logs, []keytable.Log) {
	table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{Words: 1 + keytable.LogWords, Logs: []int{bound}, Shards: 1})
	logs := make([]keytable.Log, n)
	for i := range logs {
		logs[i] = keytable.Log(add(table, fmt.Append(nil, i))[1:])
	}
	return table.Shard(0).Logs(0), logs
}

func times(ls *keytable.Logs, l keytable.Log) []int64 {
	var ts []int64
	for i := range l.Len() {
		ts = append(ts, ls.At(l, i))
	}
	return ts
}

// TestLogsAgainstSlices does random things to several logs that share their
// storage, and to a slice for each.
func TestLogsAgainstSlices(t *testing.T) {
	rnd := seeded(t)
	bounds := []int{127, 128, 129, 500, 512, 513, 1000}
	for bound := 1; bound <= 100; bound++ {
		bounds = append(bounds, bound)
	}
	for _, bound := range bounds {
		checkLogs(t, rnd, bound)
	}
}

func checkLogs(t *testing.T, rnd *rand.Rand, bound int) {
	t.Helper()
	ls, logs := newLogs(bound, 5)
	if ls.Bound() != bound {
		t.Fatalf("bound %d, want %d", ls.Bound(), bound)
	}
	want := make([][]int64, len(logs))
	now := rnd.Int64N(1000) - 500
	grown := false
	for step := range 1500 + 4*bound {
		now += max(rnd.Int64N(4)-1, 0) // ties are common
		i := rnd.IntN(len(logs))
		switch rnd.IntN(40) {
		case 0:
			ls.Clear(logs[i])
			want[i] = nil
		case 1, 2:
			gone := now - rnd.Int64N(int64(2*bound)+5)
			k, _ := slices.BinarySearch(want[i], gone+1)
			want[i] = want[i][k:]
			if left := ls.Expire(logs[i], gone); left != len(want[i]) {
				t.Fatalf("bound %d, step %d: Expire leaves %d, want %d", bound, step, left, len(want[i]))
			}
		default:
			if rnd.IntN(8) > 0 {
				i = 0 // one log is to reach its bound
			}
			ls.Add(logs[i], now)
			want[i] = append(want[i], now)
			want[i] = want[i][max(len(want[i])-bound, 0):]
		}
		grown = grown || len(want[i]) == bound
		if got := times(ls, logs[i]); !slices.Equal(got, want[i]) {
			t.Fatalf("bound %d, step %d: log %d is %v, want %v", bound, step, i, got, want[i])
		}
	}
	for i := range logs {
		if got := times(ls, logs[i]); !slices.Equal(got, want[i]) {
			t.Errorf("bound %d: log %d ends as %v, want %v", bound, i, got, want[i])
		}
	}
	if !grown && bound < 100 {
		t.Errorf("bound %d: no log was ever full; the test has no teeth", bound)
	}
}

// TestLogsReuseBlocks fills and clears logs again and again: no more blocks may
// be taken than the first round took.
func TestLogsReuseBlocks(t *testing.T) {
	for _, bound := range []int{1, 3, 4, 5, 70, 600} {
		ls, logs := newLogs(bound, 9)
		round := func() {
			for i := range logs {
				for now := range int64(bound) {
					ls.Add(logs[i], now)
				}
			}
			for i := range logs {
				ls.Clear(logs[i])
			}
		}
		round()
		first := ls.Blocks()
		for range 20 {
			round()
		}
		if ls.Blocks() != first {
			t.Errorf("bound %d: %d blocks after 21 rounds, %d after one", bound, ls.Blocks(), first)
		}
	}
}

func TestLogsDoNotAllocateWhenFull(t *testing.T) {
	ls, logs := newLogs(100, 1)
	now := int64(0)
	tick := func() {
		now++
		ls.Expire(logs[0], now-50)
		ls.Add(logs[0], now)
	}
	for range 200 {
		tick()
	}
	if n := testing.AllocsPerRun(100, tick); n != 0 {
		t.Errorf("%v allocations to add to a log that has its room", n)
	}
}
