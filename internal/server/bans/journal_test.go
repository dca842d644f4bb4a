package bans

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestEndedBans takes each end once, by a ban that began before it, and bounds their number.
func TestEndedBans(t *testing.T) {
	var b endedBans
	at := time.Unix(1_700_000_000, 0)
	take := func(key string, since time.Time) bool {
		_, ok := b.take(&ratelimit.BanRecord{Rule: "r", Key: []string{key}, Since: since})
		return ok
	}
	for n := range maxEndedBans + 10 {
		b.add(endedBan{"r", []string{fmt.Sprint(n)}, at})
	}
	if len(b.ends) != maxEndedBans || len(b.all) != maxEndedBans || take("9", at) || take("10", at.Add(1)) || !take("10", at) || take("10", at) {
		t.Errorf("%d are kept, or not the newest", len(b.ends))
	}
	b = endedBans{}
	b.add(endedBan{"r", []string{"x"}, at})
	b.add(endedBan{"r", []string{"x"}, at.Add(time.Hour)})
	b.add(endedBan{"r", []string{"y"}, at})
	if !take("x", at.Add(time.Minute)) || len(slices.Collect(b.left())) != 2 || !take("x", at) || take("x", at) {
		t.Errorf("%v are left", slices.Collect(b.left()))
	}
	if keyOf("r", []string{"a\x00b", "c"}) == keyOf("r", []string{"a", "b\x00c"}) {
		t.Error("two keys are one")
	}
}
