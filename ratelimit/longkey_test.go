package ratelimit_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// The jitter of a ban is repeated by its seed also for a key that is kept as a
// digest, or a replay would report other bans each time.
func TestJitterOfLongKeys(t *testing.T) {
	until := func(seed uint64) time.Time {
		r := limit(t, "r")
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

// No digest of a long key reads as a key of several fields.
func TestDigestsHaveNoParts(t *testing.T) {
	m, _ := mustMemory(t, mustSet(t, limit(t, "r", per(1, time.Second))), ratelimit.Config{})
	key := []byte(strings.Repeat("k", 2000))
	for i := range 20_000 {
		binary.LittleEndian.PutUint64(key, uint64(i))
		digest := m.Stored(key)
		for rest := digest; ; {
			n, head := binary.Uvarint(rest)
			if head <= 0 || n > uint64(len(rest)-head) {
				break
			}
			if rest = rest[head+int(n):]; len(rest) == 0 {
				t.Fatalf("the digest of key %d is %x, which is parts", i, digest)
			}
		}
	}
}
