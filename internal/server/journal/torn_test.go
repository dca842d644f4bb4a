package journal

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// An image is a directory of two snapshots and the journals that they need.
type image struct {
	*memFS
	count    int    // the state is 1 to count
	covered  int    // of these in the newest snapshot
	snapshot string // the newest
	journals []string
}

// newImage returns an image whose newest snapshot has about size bytes.
func newImage(t *testing.T, size int) *image {
	t.Helper()
	m := &image{memFS: newMemFS()}
	s, err := begin(m)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := func() { s.snapshot(); m.covered = len(s.state) }
	for range 3 {
		s.add(true)
	}
	snapshot()
	for len(s.state)*40 < size {
		n := uint64(len(s.state) + 1)
		s.state = append(s.state, n)
		if _, err := s.dir.Journal().Append(binary.LittleEndian.AppendUint64(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	snapshot()
	for range 2 { // two lives, so that the older snapshot needs two more journals
		s.add(true)
		s.add(true)
		s.end()
		if len(s.errs) > 0 {
			t.Fatal(s.errs)
		}
		s = mustBegin(t, m)
	}
	snapshot()
	for range 4 {
		s.add(true)
	}
	s.end()
	if len(s.errs) > 0 {
		t.Fatal(s.errs)
	}
	m.count = len(s.state)
	for name := range m.names {
		if _, ok := numberOf(name, journalStem); ok {
			m.journals = append(m.journals, name)
		}
	}
	slices.Sort(m.journals)
	m.snapshot = snapshotName(3)
	return m
}

// detected reads the image with b in place of the newest snapshot, and returns an
// error when that is not noticed or the state is not whole.
func (m *image) detected(b []byte) error {
	c := m.clone()
	c.set(m.snapshot, b)
	s, err := begin(c)
	if err != nil {
		return err
	}
	_ = s.dir.Close()
	switch {
	case s.info.Generation != 2 || len(s.info.Problems) != 1:
		return fmt.Errorf("generation %d was read, problems %v", s.info.Generation, s.info.Problems)
	case len(s.state) != m.count || s.found.Missing > 0 || s.found.Damaged > 0:
		return fmt.Errorf("%d of %d were read, journal %+v", len(s.state), m.count, s.found)
	case c.names[m.snapshot] != nil || c.names[m.snapshot+badSuffix] == nil:
		return fmt.Errorf("the damaged file was not set aside")
	}
	return s.whole()
}

// eachFlip calls f with b with one bit changed, for each bit, or in the short form
// for every 41st.
func eachFlip(b []byte, f func(bit int, b []byte)) {
	step := 1
	if testing.Short() {
		step = 41
	}
	for bit := 0; bit < 8*len(b); bit += step {
		c := slices.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		f(bit, c)
	}
}

func TestImageIsWhole(t *testing.T) {
	m := newImage(t, 4096)
	s, err := begin(m)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.dir.Close()
	if s.info.Generation != 3 || len(s.state) != m.count || s.whole() != nil || len(s.info.Problems)+len(s.found.Problems) > 0 {
		t.Errorf("read %d of %d, %+v, %+v", len(s.state), m.count, s.info, s.found)
	}
	if n := len(m.read(m.snapshot)); n < 4000 || n > 5000 {
		t.Errorf("the newest snapshot has %d bytes", n)
	}
	if got := s.info.Records; got != uint64(m.covered) {
		t.Errorf("the newest snapshot has %d records, want %d", got, m.covered)
	}
}

// TestEveryBitOfASnapshot changes each bit of a snapshot of 4 KiB: each is
// found, before a record of it is used, and nothing is lost, as the snapshot before
// and the journals since make up for it.
func TestEveryBitOfASnapshot(t *testing.T) {
	m := newImage(t, 4096)
	eachFlip(m.read(m.snapshot), func(bit int, b []byte) {
		m.set("flipped", b)
		f, err := m.open("flipped")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readSnapshot(f, nil); err == nil {
			t.Fatalf("bit %d: it is taken for whole", bit)
		}
		if bit%11 == 0 || longTests() { // a life takes longer
			if err := m.detected(b); err != nil {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	})
}

func TestEveryTruncationOfASnapshot(t *testing.T) {
	m := newImage(t, 4096)
	whole := m.read(m.snapshot)
	for n := range whole {
		if err := m.detected(slices.Clone(whole[:n])); err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if err := m.detected(append(slices.Clone(whole), 0)); err != nil {
		t.Errorf("a byte more: %v", err)
	}
}

// TestBitsTestCanFail makes the checksums of a changed file right again, as if the
// format had none: then bits change and nobody notices.
func TestBitsTestCanFail(t *testing.T) {
	m := newImage(t, 1024)
	tried, unnoticed := 0, 0
	eachFlip(m.read(m.snapshot), func(bit int, b []byte) {
		if first := 8 * (snapshotHeaderLen + blockHeaderLen); bit >= first && bit < 8*(len(b)-footerLen-4) {
			reseal(b)
			tried++
			if m.detected(b) != nil {
				unnoticed++
			}
		}
	})
	if unnoticed < tried/2 || tried == 0 {
		t.Errorf("%d of %d changed bits went unnoticed without checksums; want most of them", unnoticed, tried)
	}
}

// reseal makes the checksums of a snapshot of one block right.
func reseal(b []byte) {
	h, err := parseSnapshotHeader(b)
	if err != nil {
		panic(err)
	}
	block := b[snapshotHeaderLen : len(b)-footerLen]
	end := len(block) - 4
	sum := checksum(sumOf(h.generation, 0), block[:end])
	binary.LittleEndian.PutUint32(block[end:], sum)
	var t totals
	t.add(int(binary.LittleEndian.Uint32(block[4:])), end-blockHeaderLen, sum)
	copy(b[len(b)-footerLen:], t.append(nil, h.generation))
}

// readWith reads the image with b in place of a journal.
func (m *image) readWith(name string, b []byte) (*life, error) {
	c := m.clone()
	c.set(name, b)
	s, err := begin(c)
	if err != nil {
		return nil, err
	}
	return s, s.dir.Close()
}

// TestEveryTruncationOfAJournal cuts the newest one: what is left is used, the
// state is one that was, and what was cut is told.
func TestEveryTruncationOfAJournal(t *testing.T) {
	m := newImage(t, 64)
	newest := m.journals[len(m.journals)-1]
	whole := m.read(newest)
	ends := []int{0, journalHeaderLen}
	for at := journalHeaderLen; at < len(whole); {
		at += recordHeaderLen + int(binary.LittleEndian.Uint32(whole[at:]))
		ends = append(ends, at)
	}
	for n := range whole {
		s, err := m.readWith(newest, slices.Clone(whole[:n]))
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		records := max(0, countBelow(ends, n)-2)
		clean := slices.Contains(ends, n)
		if err := s.whole(); err != nil || len(s.state) != m.covered+records || (s.found.Cut == 0) != clean || s.found.Damaged != 0 {
			t.Fatalf("cut to %d bytes: read %d, want %d and %d; %v; %+v", n, len(s.state), m.covered, records, err, s.found)
		}
	}
}

func countBelow(ends []int, n int) (count int) {
	for _, end := range ends {
		if end <= n {
			count++
		}
	}
	return count
}

// but returns an error unless the state is 1 to count, in order, without one number
// above covered; 0 if none may be missing.
func (s *life) but(covered, count int) (missing int, err error) {
	want := 1
	for _, n := range s.state {
		if n == uint64(want+1) && missing == 0 && want > covered {
			missing, want = want, want+1
		}
		if n != uint64(want) {
			return missing, fmt.Errorf("read %d, want %d", n, want)
		}
		want++
	}
	if want == count && missing == 0 {
		missing, want = count, want+1
	}
	if want != count+1 {
		return missing, fmt.Errorf("read up to %d, want %d", want-1, count)
	}
	return missing, nil
}

// TestEveryBitOfAJournal changes each bit of the newest journal. Nothing is lost but
// the record with that bit. It is told which that is, and the file is kept when there
// is something behind that record.
func TestEveryBitOfAJournal(t *testing.T) {
	m := newImage(t, 64)
	newest := m.journals[len(m.journals)-1]
	eachFlip(m.read(newest), func(bit int, b []byte) {
		s, err := m.readWith(newest, b)
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		missing, err := s.but(m.covered, m.count)
		if err != nil {
			t.Fatalf("bit %d: %v; %+v", bit, err, s.found)
		}
		if len(s.found.Problems) == 0 || s.found.Cut+s.found.Damaged == 0 {
			t.Fatalf("bit %d: nobody was told; %+v", bit, s.found)
		}
		if inHeader := bit/8 < journalHeaderLen; (missing == 0) != inHeader {
			t.Fatalf("bit %d: %d is missing", bit, missing)
		}
		if hole := missing > 0 && missing < m.count; hole != (s.found.Missing == 1) {
			t.Fatalf("bit %d: %d is missing, and %+v was told", bit, missing, s.found)
		}
	})
}

// TestHoleInAJournal damages a record in the middle. The records behind it are read,
// the file is kept, also when snapshots no longer need it, and numbers go on behind it.
func TestHoleInAJournal(t *testing.T) {
	m := newImage(t, 64)
	newest := m.journals[len(m.journals)-1]
	b := slices.Clone(m.read(newest))
	b[journalHeaderLen+recordHeaderLen+int(binary.LittleEndian.Uint32(b[journalHeaderLen:]))+20] ^= 1
	m.set(newest, b)
	s, err := begin(m)
	if err != nil {
		t.Fatal(err)
	}
	if missing, err := s.but(m.covered, m.count); err != nil || missing != m.covered+2 || s.found.Damaged == 0 || s.found.Missing != 1 || s.found.Cut != 0 {
		t.Fatalf("%v, %d is missing; %+v", err, missing, s.found)
	}
	if text := fmt.Sprint(s.found.Problems); !strings.Contains(text, fmt.Sprintf("record %d is lost", m.covered+2)) {
		t.Error(text)
	}
	s.state = append(s.state, 0) // in its place, so that numbers go on
	s.add(true)
	s.add(true)
	if err := s.dir.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := begin(m)
	if err != nil {
		t.Fatal(err)
	}
	if missing, err := again.but(m.covered, m.count+2); err != nil || missing != m.covered+2 || again.found.Missing != 1 {
		t.Errorf("%v, %d is missing; %+v", err, missing, again.found)
	}
	for range 3 {
		again.add(true)
		again.snapshot()
	}
	if err := again.dir.Close(); err != nil || len(again.errs) > 0 {
		t.Fatal(err, again.errs)
	}
	if m.names[newest] != nil || m.names[newest+badSuffix] == nil {
		t.Errorf("the damaged file is not kept: %v", names(m.memFS))
	}
}

// TestLongJournalResynchronises damages a journal of some MiB, with records of all
// lengths, at places of any distance.
func TestLongJournalResynchronises(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		b := appendJournalHeader(nil, 5)
		var ends []int
		for n := uint64(5); len(b) < 3<<20; n++ {
			b = appendRecord(b, n, make([]byte, 1+rng.IntN(1<<rng.IntN(21))))
			ends = append(ends, len(b))
		}
		damaged := map[int]bool{} // records, from 0
		for range 1 + rng.IntN(4) {
			at := journalHeaderLen + rng.IntN(len(b)-journalHeaderLen)
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
		disk.set(journalName(1), b)
		s, found, err := openFS(disk, Restore{})
		if err != nil {
			t.Fatal(err)
		}
		info := found.Journal
		_ = s.Close()
		if int(info.Records) != len(ends)-len(damaged) {
			t.Fatalf("%d of %d records were read; want all but %d: %+v", info.Records, len(ends), len(damaged), info)
		}
	}
}

// TestMissingJournal removes a file from the middle: that is told.
func TestMissingJournal(t *testing.T) {
	m := newImage(t, 64)
	// The newest snapshot is damaged, so all journals since the one before are needed.
	b := slices.Clone(m.read(m.snapshot))
	b[len(b)-1] ^= 1
	m.set(m.snapshot, b)
	_ = m.remove(m.journals[len(m.journals)-2])
	s, err := begin(m)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.dir.Close()
	if s.found.Missing != 2 || len(s.found.Problems) != 1 || s.info.Generation != 2 {
		t.Errorf("%+v, %+v; want 2 missing", s.info, s.found)
	}
}

func names(l *memFS) []string {
	all, _ := l.list()
	slices.Sort(all)
	return all
}
