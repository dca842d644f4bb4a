package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// An image is a directory with a snapshot of records and others behind it.
type image struct {
	*memFS
	covered int   // numbers in the snapshot
	count   int   // numbers in all
	ends    []int // of the header and of each record
}

func newImage(t *testing.T) *image {
	t.Helper()
	m := &image{memFS: newMemFS(), covered: 30}
	s := mustBegin(t, m)
	for range m.covered {
		s.add(false)
	}
	s.snapshot()
	for range 10 {
		s.add(true)
	}
	s.end()
	if len(s.errs) > 0 {
		t.Fatal(s.errs)
	}
	m.count = len(s.state)
	b := m.read(stateName)
	for at := headerLen; at < len(b); at += sizeOf(b[at:]) {
		m.ends = append(m.ends, at)
	}
	m.ends = append(m.ends, len(b))
	return m
}

// readWith reads the image with b in place of the file, and returns the numbers that are missing.
func (m *image) readWith(b []byte) (s *life, missing []int, err error) {
	c := m.clone()
	c.set(stateName, b)
	if s, err = begin(c); err != nil {
		return nil, nil, err
	}
	want := 1
	for _, n := range s.state {
		for ; want < int(n); want++ {
			missing = append(missing, want)
		}
		if want != int(n) {
			return s, missing, fmt.Errorf("read %d after %d", n, want-1)
		}
		want++
	}
	for ; want <= m.count; want++ {
		missing = append(missing, want)
	}
	return s, missing, s.dir.Close()
}

// lostWith is readWith for a file that is damaged at some places. It returns an error unless nothing
// is lost but the records with these places, and this is reported.
func (m *image) lostWith(b []byte, places ...int) error {
	var want []int
	for _, at := range places {
		i, found := slices.BinarySearch(m.ends, at)
		if found {
			i++
		}
		if i > 0 { // not in the header
			want = append(want, i)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	s, missing, err := m.readWith(b)
	if err != nil {
		return err
	}
	if !slices.Equal(missing, want) {
		return fmt.Errorf("missing %v, want %v", missing, want)
	}
	holes := len(want) // at the end nothing follows them
	for holes > 0 && want[holes-1] == m.count-(len(want)-holes) {
		holes--
	}
	if len(s.found.Problems) == 0 || s.found.Cut+s.found.Damaged == 0 || int(s.found.Missing) != holes {
		return fmt.Errorf("missing %v, reported %+v", missing, s.found)
	}
	return nil
}

// TestEveryBit changes each bit of a file, in the short form every 41st. Nothing is lost but the record
// with that bit, in the snapshot as behind it.
func TestEveryBit(t *testing.T) {
	m := newImage(t)
	b := m.read(stateName)
	step := 1
	if testing.Short() {
		step = 41
	}
	for bit := 0; bit < 8*len(b); bit += step {
		c := slices.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		if err := m.lostWith(c, bit/8); err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
}

// TestDoubleDamage changes runs of bytes at two places: nothing is lost but the records with them.
func TestDoubleDamage(t *testing.T) {
	m := newImage(t)
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		b := slices.Clone(m.read(stateName))
		var places []int
		for range 2 {
			at := rng.IntN(len(b))
			for i := range min(1+rng.IntN(40), len(b)-at) {
				b[at+i] ^= byte(1 + rng.IntN(255))
				places = append(places, at+i)
			}
		}
		if slices.Min(places) < headerLen {
			continue // the first record that is lost is not counted then
		}
		if err := m.lostWith(b, places...); err != nil {
			t.Fatalf("places %v: %v", places, err)
		}
	}
}

// TestDamageTestCanFail makes the checksum of a changed record right again, as if the format had none:
// then nothing is noticed.
func TestDamageTestCanFail(t *testing.T) {
	m := newImage(t)
	b := slices.Clone(m.read(stateName))
	at := m.ends[3]
	b[m.ends[4]-1] ^= 1
	seal(b[at:m.ends[4]], numberOf(b[at:]))
	if err := m.lostWith(b, m.ends[4]-1); err == nil {
		t.Error("a change without a checksum was noticed")
	}
}

// TestEveryTruncation cuts a file at each length. What is left is used; the cut counts as a torn tail behind the snapshot,
// and as damage within it.
func TestEveryTruncation(t *testing.T) {
	m := newImage(t)
	whole := m.read(stateName)
	for n := range whole {
		s, missing, err := m.readWith(slices.Clone(whole[:n]))
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		records := 0
		for records+1 < len(m.ends) && m.ends[records+1] <= n {
			records++
		}
		if len(s.state) != records || len(missing) != m.count-records {
			t.Fatalf("cut to %d bytes: read %d, want %d", n, len(s.state), records)
		}
		switch clean := slices.Contains(m.ends, n); {
		case n < headerLen: // the number of records is lost
			if s.found.Damaged != int64(n) || s.found.Problems == nil {
				t.Fatalf("cut to %d bytes: %+v", n, s.found)
			}
		case records < m.covered:
			if s.found.Missing != uint64(m.covered-records) || s.found.Cut != 0 || (s.found.Damaged == 0) != clean {
				t.Fatalf("cut to %d bytes, within the snapshot: %+v", n, s.found)
			}
		case (s.found.Cut == 0) != clean || s.found.Damaged != 0 || s.found.Missing != 0:
			t.Fatalf("cut to %d bytes: %+v", n, s.found)
		}
	}
}

// TestRecordsWithinRecords damages the header of a record whose data are whole records of the same file, as a client could
// choose them if it could guess their numbers, and of another file: only the former are taken for records.
func TestRecordsWithinRecords(t *testing.T) {
	for _, known := range []bool{false, true} {
		h := header{first: newFirst()}
		number := newFirst()
		if known {
			number = h.first + 1
		}
		fake := appendRecord(nil, 1, []byte("fake"))
		seal(fake, number)
		file := appendRecord(appendRecord(nil, 1, fake), 1, []byte("end"))
		seal(file, h.first)
		file[1] ^= 0xff // its length
		disk := newMemFS()
		disk.set(stateName, append(h.append(nil), file...))
		var read []string
		j, _, err := openFS(disk, func(r Record) error { read = append(read, string(r.Data)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		_ = j.Close()
		if slices.Contains(read, "fake") != known || !known && !slices.Equal(read, []string{"end"}) {
			t.Errorf("known %v: read %q", known, read)
		}
	}
}

// TestLongFileResynchronises damages a file of some MiB, with records of all lengths, at places of any distance.
func TestLongFileResynchronises(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		h := header{first: 5}
		b := h.append(nil)
		var ends []int
		for len(b) < 3<<20 {
			b = appendRecord(b, 1, make([]byte, rng.IntN(1<<rng.IntN(21))))
			ends = append(ends, len(b))
		}
		seal(b[headerLen:], h.first)
		damaged := map[int]bool{} // records, from 0
		for range 1 + rng.IntN(4) {
			at := headerLen + rng.IntN(len(b)-headerLen)
			b[at] ^= 1 << rng.IntN(8)
			i, found := slices.BinarySearch(ends, at)
			if found {
				i++
			}
			if damaged[i] { // the bit may be as it was
				b[at] ^= 0xff
			}
			damaged[i] = true
		}
		disk := newMemFS()
		disk.set(stateName, b)
		j, found, err := openFS(disk, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = j.Close()
		if int(found.Appended) != len(ends)-len(damaged) {
			t.Fatalf("%d of %d records were read; want all but %d: %+v", found.Appended, len(ends), len(damaged), found)
		}
	}
}
