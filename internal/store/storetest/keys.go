package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// keyCases are about keys and names that are hard to keep apart.
var keyCases = []Case{
	{
		"Keys", anyStore, keysCase,
		"No two keys and no two rules share a count, whatever bytes are in keys and names; a key that is too long is rejected with ErrKeyTooLong, and nothing is charged.",
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

// hardNames are the names of rules that are easily taken for each other, or for keys.
var hardNames = []string{"a", "a:b", "b", "A", " a", "a ", "{a}", "{", "}", "r\xff", "r\x00", "r", "rule", "ban", "*", "0", "\u202e", strings.Repeat("n", 300)}

func keysCase(c *check) {
	var rules []ratelimit.Rule
	for _, name := range hardNames {
		rules = append(rules, named(name, c.lasting(ratelimit.Sliding, 60_000)))
	}
	s := c.session(rules...)
	charged := []subject{}
	for _, key := range append(hardKeys(), longKeys()...) {
		look := &request{Set: s.model.set, Now: s.now, Peek: true, Subjects: []subject{about(0, key), about(1, "beside")}}
		if err := s.decide(look); err == nil {
			charged = append(charged, about(0, key))
		} else if look.Peek = false; !errors.Is(s.decide(look), ratelimit.ErrKeyTooLong) || len(key) <= fitting {
			c.fatal("a key of %d bytes, %.40q: Decide returned %w", len(key), key, err)
		}
	}
	for i := range rules {
		for _, key := range []string{"b:c", "c", "b", "a:b:c"} {
			charged = append(charged, about(i, key))
		}
	}
	for i := range charged {
		s.take(uint64(i+1), charged[i])
	}
	s.ban(0, "b:c", c.base+int64(time.Hour))
	for _, sub := range append(charged, about(1, "beside")) {
		s.peek(1, sub)
	}
}
