package latelyredis

import "testing"

// TestDamagedEndOfState reads the end of a state, the number of an entry, which has no checksum since scripts read it, too.
func TestDamagedEndOfState(t *testing.T) {
	c := new(Counters)
	for end, want := range map[string]error{
		"1795869231491-0": nil, "179\xb7869231491-0": errAnswer, "1795869231491": errAnswer, "1795869231491-": errAnswer,
		"-0": errAnswer, "1-2-3": errAnswer, "1795869231491-0\xff": errAnswer, "99999999999999999999-0": errAnswer,
	} {
		if err := c.readPart(&countState{seqs: make(map[string]read)}, "e"+end); err != want {
			t.Errorf("%q: %v, want %v", end, err, want)
		}
	}
}
