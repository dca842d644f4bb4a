package ratelimit_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// The jitter of a ban is repeated by its seed also for a key that is kept as a
// digest, or a replay would report other bans each time.
func TestJitterOfLongKeys(t *testing.T) {
	until := func(seed uint64) time.Time {
		r := limitRule(t, "r")
		r.Limits = nil
		r.Ban = &ratelimit.Ban{Span: time.Minute, For: time.Hour, Jitter: 0.5}
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{JitterSeed: seed})
		return takeKeyN(l, at(0), strings.Repeat("k", 1025), 1).BannedUntil
	}
	if a, b := until(7), until(7); a.IsZero() || !a.Equal(b) {
		t.Errorf("with one seed banned until %v and %v", a, b)
	}
	if a, b := until(7), until(8); a.Equal(b) {
		t.Errorf("with two seeds banned until %v", a)
	}
}

// No digest of a long key begins like a key of several fields, so no part of it is listed as a value.
func TestDigestsHaveNoParts(t *testing.T) {
	m, _ := mustMemory(t, mustSet(t, limitRule(t, "r", per(1, time.Second))), ratelimit.Config{})
	k := match.MustKey("user", "path")
	key := []byte(strings.Repeat("k", 2000))
	for i := range 20_000 {
		binary.LittleEndian.PutUint64(key, uint64(i))
		digest := m.Stored(key)
		for part := range k.Parts(digest) {
			t.Fatalf("the digest of key %d is %x, whose first part is %x", i, digest, part)
		}
	}
}
