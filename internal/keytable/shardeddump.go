package keytable

import "iter"

// Shards yields the shards of t, in no order that means anything.
func (t *Sharded) Shards() iter.Seq[*Shard] {
	return func(yield func(*Shard) bool) {
		for i := range t.shards {
			if !yield(&t.shards[i]) {
				return
			}
		}
	}
}

// Some yields keys and records of s from the n-th on, for as long as the loop's
// body wants more. Since records stay where they are, a caller can let go of the
// lock in between, and sees each of those that were there once.
//
// REQUIRES: s locked. The body must copy what it keeps.
func (s *Shard) Some(n int) iter.Seq2[[]byte, []uint64] {
	return func(yield func([]byte, []uint64) bool) {
		for ; n < s.n; n++ {
			if rec := s.record(uint32(n)); !yield(s.key(rec[1]), rec[headWords:]) {
				return
			}
		}
	}
}
