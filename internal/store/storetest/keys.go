package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// keyCases are about keys and names that are hard to keep apart.
var keyCases = []Case{
	{
		"Keys", anyStore, keysCase,
		"No two keys share a count, whatever bytes they have; a key that is too long is rejected with ErrKeyTooLong, and nothing is charged.",
	},
	{
		"Names", anyStore, namesCase,
		"No two rules share a count, whatever their names.",
	},
	{
		"KeyBytes", anyStore, keyBytesCase,
		"A store does not keep the memory of a key, which the caller may change.",
	},
}

// fitting is how long a key may be for any store to take it.
const fitting = 255

// hardKeys returns keys that are easily taken for each other.
func hardKeys() []string {
	keys := []string{
		"", "a", "a\x00", "a\x00\x00", "\x00", "\x00a", "A", " a", "a ", "a\n", "a\r\n",
		"a:b", "a:b:c", ":", "a|b", "a,b", "a/b", "{a}", "{a", "a}", "{}", "}{", "{{a}}", "*", "a*", "[a]", "$1", "%41", "%00",
		"\xff", "\xff\xfe", "\xc3\x28", "\xe2\x82", "\u202e", "e\u0301", "\u00e9", "\ufeffa", "0", "00", "-0", "1e0", "nil", "null",
		"r0", "r0:a", "ban:a", strings.Repeat("x", fitting),
	}
	for _, n := range []int{7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 254} {
		keys = append(keys, strings.Repeat("y", n), strings.Repeat("y", n-1)+"z", "z"+strings.Repeat("y", n-1), strings.Repeat("\x00", n))
	}
	return keys
}

// longKeys returns keys that a store need not take.
func longKeys() []string {
	var keys []string
	for _, n := range []int{256, 1023, 1024, 1025, 4096, 1<<16 - 1, 1 << 16, 1<<20 - 1, 1 << 20} {
		keys = append(keys,
			strings.Repeat("y", n), "z"+strings.Repeat("y", n-1), strings.Repeat("y", n/2)+"z"+strings.Repeat("y", n-n/2-1),
			strings.Repeat("y", n-1)+"z")
	}
	return keys
}

func keysCase(c *check) {
	s := c.session(c.lasting(ratelimit.Sliding, 1000), named("beside", c.lasting(ratelimit.Sliding, 60_000)))
	var taken []string
	charged := uint64(0)
	for _, key := range append(hardKeys(), longKeys()...) {
		cost := uint64(len(taken) + 1)
		r := &request{Set: s.model.set, Now: s.now, Cost: cost, Subjects: []subject{about(0, key), about(1, "beside")}}
		switch err := s.decide(r); {
		case err == nil && admitted(r):
			taken = append(taken, key)
			charged += cost
		case err == nil:
			c.fatal("a key of %d bytes, %.40q, was refused: %+v", len(key), key, r.Subjects[0].Outcome)
		case !errors.Is(err, ratelimit.ErrKeyTooLong) || len(key) <= fitting:
			c.fatal("a key of %d bytes, %.40q: Decide returned %w", len(key), key, err)
		}
	}
	for i, key := range taken {
		if n := s.used(0, key); n != uint64(i+1) {
			c.complain("key %d, %.40q of %d bytes, has used %d, want %d", i, key, len(key), n, i+1)
		}
	}
	if n := s.used(1, "beside"); n != charged {
		c.complain("%d were charged beside keys that were taken and keys that were too long, want %d", n, charged)
	}
}

func namesCase(c *check) {
	names := []string{"a", "a:b", "b", "A", " a", "a ", "{a}", "{", "}", "r\xff", "r\x00", "r", "rule", "ban", "*", "0", "\u202e", strings.Repeat("n", 300)}
	var rules []ratelimit.Rule
	for _, name := range names {
		rules = append(rules, named(name, c.lasting(ratelimit.Sliding, 60)))
	}
	s := c.session(rules...)
	for i := range rules {
		for _, key := range []string{"b:c", "c", "b", "", "a:b:c"} {
			s.take(uint64(i+1), about(i, key))
		}
	}
	for i := range rules {
		for _, key := range []string{"b:c", "c", "b", "", "a:b:c"} {
			s.peek(1, about(i, key))
		}
	}
	s.ban(0, "b:c", c.start()+int64(time.Hour))
	for i := range rules {
		s.take(1, about(i, "c"), about((i+1)%len(rules), "b:c"))
	}
}

func keyBytesCase(c *check) {
	r := c.lasting(ratelimit.Sliding, 10)
	r.Ban = &ratelimit.Ban{After: 4, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
	s := c.session(r)
	for _, n := range []int{3, 20, 200} {
		buf := []byte(strings.Repeat("k", n))
		for i := range 40 {
			buf[0], buf[n-1] = byte('a'+i%3), byte('0'+i%2)
			s.take(1, subject{Key: buf})
		}
		for i := range 6 {
			key := strings.Repeat("k", n-2)
			s.peek(1, about(0, string(rune('a'+i%3))+key+fmt.Sprint(i%2)))
		}
	}
}
