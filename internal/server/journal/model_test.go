package journal

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// A life is a process with a state: the numbers 1 to n, in the order in which
// they came.
type life struct {
	dir   *Journal
	state []uint64
	acked int // how many of state are certainly on disk
	errs  []error
	found Found
}

// openFS opens l.
func openFS(l fileSystem, restore func(Record) error) (*Journal, Found, error) {
	if restore == nil {
		restore = func(Record) error { return nil }
	}
	j := &Journal{fs: l, path: "dir", release: func() error { return nil }}
	found, err := j.restore(restore)
	return j, found, err
}

// begin opens l and reads its records.
func begin(l fileSystem) (*life, error) {
	s := new(life)
	var err error
	s.dir, s.found, err = openFS(l, func(r Record) error {
		n := binary.LittleEndian.Uint64(r.Data)
		if r.Type != byte(n) || len(r.Data) != 8+int(n%61) && len(r.Data) != 8+int(n%700) {
			return fmt.Errorf("record %d has type %d and %d bytes", n, r.Type, len(r.Data))
		}
		s.state = append(s.state, n)
		return nil
	})
	return s, err
}

// whole reports whether the state is 1 to len(state).
func (s *life) whole() error {
	for i, n := range s.state {
		if n != uint64(i+1) {
			return fmt.Errorf("the state has %d in place %d, of %d", n, i+1, len(s.state))
		}
	}
	return nil
}

// add changes the state and appends that to the journal. Some wait, some do not.
func (s *life) add(wait bool) {
	n := uint64(len(s.state) + 1)
	s.state = append(s.state, n)
	b := make([]byte, 8+n%700)
	binary.LittleEndian.PutUint64(b, n)
	p, err := s.dir.Append(byte(n), b)
	if err == nil && wait {
		if err = p.Wait(); err == nil {
			s.acked = int(n)
		}
	}
	s.note(err)
}

func (s *life) note(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// record is what the snapshot has of a number.
func record(n uint64) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+60), n)
	return b[:8+n%61]
}

// snapshot writes the state.
func (s *life) snapshot() {
	count := len(s.state)
	err := s.dir.WriteSnapshot(addNumbers(s.state))
	s.note(err)
	if err == nil {
		s.acked = count
	}
}

// addNumbers adds the records of numbers to a snapshot.
func addNumbers(state []uint64) func(add func(byte, []byte) error) error {
	return func(add func(byte, []byte) error) error {
		for _, n := range state {
			if err := add(byte(n), record(n)); err != nil {
				return err
			}
		}
		return nil
	}
}

// work is some of everything, in an order that does not depend on time.
func (s *life) work() {
	for i := range 24 {
		s.add(i%3 != 1)
		if i%7 == 3 {
			s.snapshot()
		}
	}
}

// end closes the journal; its error means that records are not on disk.
func (s *life) end() {
	err := s.dir.Close()
	s.note(err)
	if err == nil {
		s.acked = len(s.state)
	}
}

// same returns an error if read does not continue s: all records reported as written must be there, in order, and no
// others.
func (s *life) same(read *life) error {
	if err := read.whole(); err != nil {
		return err
	}
	if len(read.state) < s.acked {
		return fmt.Errorf("%d of %d acknowledged were lost", s.acked-len(read.state), s.acked)
	}
	if len(read.state) > len(s.state) {
		return fmt.Errorf("read %d, there were %d", len(read.state), len(s.state))
	}
	if read.found.Damaged+int64(read.found.Missing) != 0 {
		return fmt.Errorf("a disk without faults counts as damaged: %v", read.found.Problems)
	}
	return nil
}

func names(l *memFS) []string { return slices.Sorted(maps.Keys(l.names)) }
