package throttle

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/window"
)

func emptyThrottle(t testing.TB) *Limiter {
	th := must.Get(New(0))(t)
	return th
}

func exportedThrottle(th *Limiter, now time.Time) (chunks [][]byte) {
	for chunk := range th.ExportAt(now) {
		chunks = append(chunks, bytes.Clone(chunk))
	}
	return chunks
}

// TestImportContinues compares a Limiter with one that is restarted
// over and over.
func TestImportContinues(t *testing.T) {
	rnd := randtest.New(t)
	a, b := emptyThrottle(t), emptyThrottle(t)
	now, limited, differ := int64(1_700_000_000e9), 0, 0
	for i := range 5000 {
		now += rnd.Int64N(1 << rnd.IntN(33))
		at, key := time.Unix(0, now), fmt.Sprint("key ", rnd.IntN(6))
		burst, count, quantity := rnd.Uint64N(20), 1+rnd.Uint64N(60), rnd.Uint64N(3)
		da, errA := a.TakeAt(at, key, burst, count, time.Minute, quantity)
		db, errB := b.TakeAt(at, key, burst, count, time.Minute, quantity)
		if da != db || errA != nil || errB != nil {
			t.Fatalf("event %d: %+v and %+v", i, da, db)
		}
		if !da.Allowed {
			limited++
		}
		if i%97 == 0 {
			lost := emptyThrottle(t)
			b = emptyThrottle(t)
			for _, chunk := range exportedThrottle(a, at) {
				if did, err := b.ImportAt(at, chunk); err != nil || did.Kept+did.Refused > 0 {
					t.Fatalf("%+v, %v", did, err)
				}
			}
			dl, _ := lost.TakeAt(at, key, 1, 1, time.Minute, 0)
			if d, _ := b.TakeAt(at, key, 1, 1, time.Minute, 0); d != dl {
				differ++
			}
		}
	}
	if limited == 0 || differ == 0 {
		t.Errorf("%d limited, %d differ from nothing: the test has no teeth", limited, differ)
	}
}

// TestImportAfterClockWasSetBack comes back an hour before: the bucket
// drains no longer than it would have.
func TestImportAfterClockWasSetBack(t *testing.T) {
	a, b := emptyThrottle(t), emptyThrottle(t)
	must.Get(a.TakeAt(second(7200), "k", 9, 10, time.Minute, 10))(t)
	for _, chunk := range exportedThrottle(a, second(7210)) {
		if did, err := b.ImportAt(second(3600), chunk); did != (window.Imported{Keys: 1}) || err != nil {
			t.Errorf("%+v, %v", did, err)
		}
		if did, err := b.ImportAt(second(3600), chunk); did != (window.Imported{Kept: 1}) || err != nil {
			t.Errorf("again: %+v, %v", did, err)
		}
	}
	if d, _ := b.TakeAt(second(3600), "k", 9, 10, time.Minute, 0); d.ResetAfter != 50*time.Second {
		t.Errorf("%+v", d)
	}
}

// FuzzImport imports any bytes; the restored state can be exported and restored again.
func FuzzImport(f *testing.F) {
	a := emptyThrottle(f)
	for i := range int64(50) {
		a.TakeAt(second(100+i), fmt.Sprint(i%7), uint64(i), 1+uint64(i), time.Minute, 1)
	}
	for _, chunk := range exportedThrottle(a, second(150)) {
		f.Add(chunk)
		f.Add(chunk[:len(chunk)/2])
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		for _, now := range []time.Time{second(100), second(151)} {
			b, again := emptyThrottle(t), emptyThrottle(t)
			b.ImportAt(now, chunk)
			b.ImportAt(now, snapshot.Seal(bytes.Clone(chunk[:max(0, len(chunk)-4)])))
			for _, chunk := range exportedThrottle(b, now) {
				must.Get(again.ImportAt(now, chunk))(t)
			}
		}
	})
}
