package reservations

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestSettledIDs fills a stripe: ids are remembered until their time has passed, and then others fit. Exported ids are
// remembered after import.
func TestSettledIDs(t *testing.T) {
	const most = 100
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	s := Settled{most: most}
	add := func(s *Settled, number int, ends time.Time, wantFirst, wantFits bool) {
		t.Helper()
		if first, fits := s.Add(now, uint64(number*stripes), ends); first != wantFirst || fits != wantFits {
			t.Errorf("id %d: first %v, fits %v", number, first, fits)
		}
	}
	soon, late := now.Add(time.Minute), now.Add(time.Hour)
	for i := range most {
		ends := soon
		if i%2 == 0 {
			ends = late
		}
		add(&s, i, ends, true, true)
		add(&s, i, ends, false, true)
	}
	add(&s, most, late, false, false)
	copied := Settled{most: most}
	w := state.NewWriter(func(_ byte, record []byte) error { return copied.Restore(now, record) })
	if s.Save(w, now); w.Err() != nil {
		t.Fatal(w.Err())
	}
	now = soon.Add(2 * epochWidth)
	for _, s := range []*Settled{&s, &copied} {
		for i := range most / 2 {
			add(s, 2*i, late, false, true)
			add(s, most+i, late, true, true)
		}
		add(s, 2*most, late, false, false)
	}
	for _, bad := range [][]byte{nil, {1}, make([]byte, 9)} {
		if err := copied.Restore(now, bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

// TestConcurrentSettledIDs adds ids from several goroutines: each is first once.
func TestConcurrentSettledIDs(t *testing.T) {
	rnd := randtest.New(t)
	s := Settled{most: 1 << 20}
	now := time.Now()
	numbers := make([]uint64, 1000)
	for i := range numbers {
		numbers[i] = rnd.Uint64()
	}
	firsts := make(chan int)
	for range 4 {
		go func() {
			n := 0
			for _, number := range numbers {
				if first, _ := s.Add(now, number, now.Add(time.Minute)); first {
					n++
				}
			}
			firsts <- n
		}()
	}
	sum := 0
	for range 4 {
		sum += <-firsts
	}
	if sum != len(numbers) {
		t.Errorf("%d of %d ids were the first", sum, len(numbers))
	}
}
