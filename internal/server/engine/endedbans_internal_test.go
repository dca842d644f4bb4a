package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestEndedBans bounds the ends of bans that are kept, by their number and their age.
func TestEndedBans(t *testing.T) {
	var b endedBans
	at := time.Unix(1_700_000_000, 0)
	holds := func(key string, since time.Time) bool {
		_, ok := b.end(&ratelimit.BanRecord{Rule: "r", Key: []string{key}, Since: since})
		return ok
	}
	for n := range maxEndedBans + 10 {
		b.add(endedBan{"r", []string{fmt.Sprint(n)}, at})
	}
	if len(b.ends) != maxEndedBans || len(b.order) != maxEndedBans || holds("9", at) || !holds("10", at) || holds("10", at.Add(1)) {
		t.Errorf("%d are kept, or not the newest", len(b.ends))
	}
	b.add(endedBan{"r", []string{"10"}, at.Add(time.Hour)})
	b.add(endedBan{"r", []string{"10"}, at}) // an older one changes nothing
	if !holds("10", at.Add(time.Hour)) || holds("1", at) {
		t.Error("the newest end does not count")
	}
	b.add(endedBan{"r", []string{"x"}, at.Add(keepEndedBans + time.Minute)})
	if left := slices.Collect(b.since(at.Add(keepEndedBans + time.Minute))); len(left) != 2 || len(b.ends) != 2 || len(b.order) != 2 {
		t.Errorf("%v are left", left)
	}
	if keyOf("r", []string{"a\x00b", "c"}) == keyOf("r", []string{"a", "b\x00c"}) {
		t.Error("two keys are one")
	}
}
