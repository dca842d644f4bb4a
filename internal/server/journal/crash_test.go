package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// powerAt is a fault: the power goes at operation n.
func powerAt(n int) func(string, string, int) error {
	return func(_, _ string, op int) error {
		if op >= n {
			return errPower
		}
		return nil
	}
}

// crashAt runs the program on a disk whose power fails at operation n, and runs it twice more with failures at other
// operations, and returns what is wrong after that. wrap is the file system that the product uses. It ends when the first
// run ended before the power failed.
func crashAt(n int, how loss, rng *rand.Rand, wrap func(*memFS) fileSystem) (over bool, err error) {
	disk := newMemFS()
	last := &life{} // that had something to lose
	for turn := range 3 {
		disk.fault = powerAt(n)
		s, err := begin(wrap(disk))
		switch {
		case err == nil:
			s.acked = len(s.state) // it was read: it is on disk
			s.work()
			s.end()
			last = s
		case !disk.dead:
			return false, fmt.Errorf("life %d: %w", turn, err)
		}
		over = over || turn == 0 && !disk.dead
		disk = disk.reboot(how, rng)
		after, err := begin(disk.clone())
		if err == nil {
			_ = after.dir.Close()
			err = last.same(after)
		}
		if err != nil {
			return over, fmt.Errorf("after life %d: %w", turn, err)
		}
		n = 1 + rng.IntN(90)
	}
	return over, nil
}

// crashes goes through all points of a crash, and returns the first that is wrong.
func crashes(seed uint64, wrap func(*memFS) fileSystem, only func(loss) bool) (points int, err error) {
	for n := 1; ; n++ {
		ended := true
		for how := range numLosses {
			if !only(how) {
				continue
			}
			rng := rand.New(rand.NewPCG(seed, uint64(n)<<8|uint64(how)))
			over, err := crashAt(n, how, rng, wrap)
			if err != nil {
				return points, fmt.Errorf("power off at operation %d, %v: %w", n, how, err)
			}
			points++
			ended = ended && over
		}
		if ended {
			return points, nil
		}
	}
}

func plain(l *memFS) fileSystem { return l }

// orderly are all kinds of loss except one that leaves any sectors: after it, a
// batch that was not synced may look like a file with a hole.
func orderly(how loss) bool { return how != loseAny }

// TestEveryCrash turns the power off at every operation, and loses unsynced writes in every way. The state read afterwards
// is one of those written, and not older than what was acknowledged.
func TestEveryCrash(t *testing.T) {
	rounds := 3
	switch {
	case longTests():
		rounds = 300
	case testing.Short():
		rounds = 1
	}
	seed := randtest.Seed(t)
	points := 0
	for round := range rounds {
		n := must.Get(crashes(seed+uint64(round), plain, orderly))(t)
		points += n
	}
	t.Logf("%d crashes", points)
}

// TestCrashLeavesAnySectors is the same, with any sectors of unsynced writes on disk. What was not acknowledged may then
// count as damaged.
func TestCrashLeavesAnySectors(t *testing.T) {
	seed := randtest.Seed(t)
	lives := 400
	if longTests() {
		lives = 40_000
	}
	for i := range lives {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		disk := newMemFS()
		n := 1 + rng.IntN(90)
		disk.fault = powerAt(n)
		s, err := begin(disk)
		if err != nil {
			continue // the power failed before anything was written
		}
		s.work()
		s.end()
		after, err := begin(disk.reboot(loseAny, rng))
		if err != nil {
			t.Fatalf("life %d: %v", i, err)
		}
		_ = after.dir.Close()
		// Any records that were not acknowledged may be present, in their order.
		after.found.Damaged, after.found.Missing = 0, 0
		if !slices.IsSorted(after.state) {
			t.Fatalf("life %d: read %v", i, after.state)
		}
		if len(after.state) > s.acked {
			after.state = after.state[:s.acked]
		}
		if err := s.same(after); err != nil {
			t.Fatalf("life %d, power off at %d: %v", i, n, err)
		}
	}
}

// TestCrashTestCanFail plants programs that leave out a sync: each is found.
func TestCrashTestCanFail(t *testing.T) {
	for name, broken := range map[string]func(l *memFS) fileSystem{
		"no sync of the snapshot before its rename": func(l *memFS) fileSystem {
			return lying{memFS: l, unsynced: tempName}
		},
		"acknowledged before the sync": func(l *memFS) fileSystem {
			return lying{memFS: l, unsynced: stateName}
		},
		"no sync of the directory": func(l *memFS) fileSystem {
			return lying{memFS: l, noDir: true}
		},
	} {
		_, err := crashes(1, broken, orderly)
		if err == nil {
			t.Errorf("%s: not found", name)
		}
		t.Logf("%s: %v", name, err)
	}
}
