package ratelimit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestBytesAreUsed compares the memory in Stats with what is stored: two keys use little, whatever is set aside for later,
// and memory that is set aside counts as used once keys share the sketches.
func TestBytesAreUsed(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := newWithBudget(t, 256<<20)
	empty := l.Stats()
	takeKeyN(l, now, "192.0.2.1", 1)
	takeKeyN(l, now, "192.0.2.2", 1)
	s := l.Stats()
	if s.Bytes > 2<<20 || s.Bytes < 100 || s.Bytes-empty.Bytes > 4<<10 {
		t.Errorf("two keys use %d bytes, none %d; want less than 2 MiB, and some hundreds more", s.Bytes, empty.Bytes)
	}
	if s.Reserved < 16<<20 || s.Bytes+s.Reserved > s.Budget {
		t.Errorf("%d bytes are reserved of %d; want a sixteenth for sketches, and some for bans", s.Reserved, s.Budget)
	}
	full := newWithBudget(t, roomBudget)
	before := full.Stats().Reserved
	fillUp(t, full, now, 2)
	for i := range 100 {
		takeKeyN(full, now.Add(time.Second), "guest-"+string(rune('a'+i)), 1)
	}
	s = full.Stats()
	if s.Rules[0].Sketched == 0 || s.Reserved >= before || s.Bytes < roomBudget/2 || s.Bytes+s.Reserved > s.Budget {
		t.Errorf("full, with %d events in sketches: %d bytes and %d reserved, before %d; budget %d", s.Rules[0].Sketched, s.Bytes, s.Reserved, before, s.Budget)
	}
}

func newWithBudget(t *testing.T, budget int64) *ratelimit.Limiter {
	t.Helper()
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{Name: "r", Key: key, Limits: []ratelimit.Limit{per(4, floodSpan)}}))(t)
	memory := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: budget}))(t)
	return ratelimit.Over(set, memory)
}
