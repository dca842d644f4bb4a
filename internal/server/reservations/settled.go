// Package reservations has the ids of decisions that a server gives out, and what it remembers of them: which were settled or reported, and
// which of earlier processes are in the counts.
package reservations

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/state"
)

// Settled remembers the ids that were settled in the memory of this process, each until its time is over. Where servers
// share a store, that remembers them. Make one with [NewSettled].
type Settled struct {
	most    int // in each stripe
	stripes [stripes]stripe
}

// NewSettled returns a Settled for about that many ids.
func NewSettled(most int) *Settled { return &Settled{most: most / stripes} }

// Bytes is about what a settled id takes.
const Bytes = 24

const (
	stripes = 16

	// epochWidth is how exactly the end of an id is remembered.
	epochWidth = time.Minute
)

type stripe struct {
	settling sync.Mutex // see Lock

	mu     sync.Mutex
	epochs map[int64]map[uint64]struct{} // numbers of ids, by the epoch in which they expire
	n      int
}

// epochOf returns the epoch after which nothing that ends at t is of use.
func epochOf(t time.Time) int64 { return t.UnixNano()/int64(epochWidth) + 1 }

// Lock returns a locked mutex, to be held while an id is added and its charge is corrected: when a client learns that an id was
// settled before, the charge must already be corrected.
func (s *Settled) Lock(number uint64) *sync.Mutex {
	m := &s.stripes[number%stripes].settling
	m.Lock()
	return m
}

// Add remembers an id until its end. It reports whether it is new, and false for fits if there is no memory for another.
func (s *Settled) Add(now time.Time, number uint64, ends time.Time) (first, fits bool) {
	stripe := &s.stripes[number%stripes]
	epoch := epochOf(ends)
	stripe.mu.Lock()
	defer stripe.mu.Unlock()
	if _, again := stripe.epochs[epoch][number]; again {
		return false, true
	}
	if stripe.n >= s.most && !stripe.expire(now, s.most) {
		return false, false
	}
	if stripe.epochs == nil {
		stripe.epochs = make(map[int64]map[uint64]struct{})
	}
	ids := stripe.epochs[epoch]
	if ids == nil {
		stripe.expire(now, s.most) // once for each epoch
		ids = make(map[uint64]struct{})
		stripe.epochs[epoch] = ids
	}
	ids[number] = struct{}{}
	stripe.n++
	return true, true
}

// expire forgets the ids whose time is over at now, and reports whether there are fewer than most.
func (s *stripe) expire(now time.Time, most int) bool {
	for epoch, ids := range s.epochs {
		if epoch < now.UnixNano()/int64(epochWidth) {
			s.n -= len(ids)
			delete(s.epochs, epoch)
		}
	}
	return s.n < most
}

// chunkIDs is how many ids a record has at most.
const chunkIDs = 8192

// Save adds records of the ids whose time is not over at now: their epoch, and their numbers in order.
func (s *Settled) Save(w *state.Writer, now time.Time) {
	all := map[int64][]uint64{}
	for i := range s.stripes {
		stripe := &s.stripes[i]
		stripe.mu.Lock()
		for epoch, ids := range stripe.epochs {
			if epoch >= now.UnixNano()/int64(epochWidth) {
				for number := range ids {
					all[epoch] = append(all[epoch], number)
				}
			}
		}
		stripe.mu.Unlock()
	}
	epochs := make([]int64, 0, len(all))
	for epoch, numbers := range all {
		slices.Sort(numbers)
		epochs = append(epochs, epoch)
	}
	slices.Sort(epochs)
	var record []byte
	for _, epoch := range epochs {
		for chunk := range slices.Chunk(all[epoch], chunkIDs) {
			record = binary.LittleEndian.AppendUint64(record[:0], uint64(epoch))
			for _, number := range chunk {
				record = binary.LittleEndian.AppendUint64(record, number)
			}
			w.Record(state.Settled, record)
		}
	}
}

// Restore remembers the ids of a record that Save has added.
func (s *Settled) Restore(now time.Time, record []byte) error {
	if len(record)%8 != 0 || len(record) == 0 {
		return errors.New("record of settled ids: cut")
	}
	epoch := int64(binary.LittleEndian.Uint64(record))
	for b := record[8:]; len(b) > 0; b = b[8:] {
		s.Add(now, binary.LittleEndian.Uint64(b), time.Unix(0, (epoch-1)*int64(epochWidth)))
	}
	return nil
}
