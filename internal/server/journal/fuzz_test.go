package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// openFS opens l. What it has is passed to the functions of r that are set.
func openFS(l fileSystem, r Restore) (*Dir, Found, error) {
	if r.Journal == nil {
		r.Journal = func([]byte) error { return nil }
	}
	return newDir(l, "state", func() error { return nil }, r)
}

// FuzzSnapshot reads any bytes as a snapshot. What is read as whole is what its
// own records make when they are written again.
func FuzzSnapshot(f *testing.F) {
	f.Add(snapshotOf(1, nil))
	f.Add(snapshotOf(1, []Record{{1, []byte("a")}, {2, nil}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, sealed := range [][]byte{b, sealedBlock(b)} {
			disk := newMemFS()
			disk.set(snapshotName(1), sealed)
			var records []Record
			d, found, err := openFS(disk, Restore{Snapshot: func(r Record) error {
				records = append(records, Record{r.Type, bytes.Clone(r.Data)})
				return nil
			}})
			if err != nil {
				continue // a newer version
			}
			info := found.Snapshot
			if (info.Generation == 1) == (len(info.Problems) == 1) {
				t.Errorf("%+v", info)
			}
			again := snapshotOf(1, records)
			if info.Generation == 1 && !bytes.Equal(payloadOf(again), payloadOf(sealed)) && len(sealed) < blockSize {
				t.Errorf("read as whole, and another when written: %x, %x", sealed, again)
			}
			_ = d.Close()
		}
	})
}

// snapshotOf returns the file of a snapshot.
func snapshotOf(generation uint64, records []Record) []byte {
	disk := newMemFS()
	w := newSnapshotWriter(func() (file, error) { return disk.create("x") }, snapshotHeader{generation: generation})
	for _, r := range records {
		_ = w.Add(r.Type, r.Data)
	}
	_ = w.finish()
	return disk.read("x")
}

// sealedBlock returns a snapshot of one block with that payload, and all
// checksums right, so that a fuzzer comes behind them.
func sealedBlock(payload []byte) []byte {
	if len(payload) < 2 || len(payload) > maxPayload {
		return payload
	}
	var totals totals
	h := snapshotHeader{generation: 1}
	b := h.append(nil)
	records := int(payload[0])
	block := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)-1))
	block = binary.LittleEndian.AppendUint32(block, uint32(records))
	block = append(block, payload[1:]...)
	sum := checksum(sumOf(1, 0), block)
	totals.add(records, len(payload)-1, sum)
	b = append(b, binary.LittleEndian.AppendUint32(block, sum)...)
	return totals.append(b, 1)
}

// payloadOf returns the canonical form of the payload of the only block.
func payloadOf(b []byte) (p []byte) {
	if len(b) < snapshotHeaderLen+footerLen+blockHeaderLen {
		return nil
	}
	records := int(binary.LittleEndian.Uint32(b[snapshotHeaderLen+4:]))
	payload := b[snapshotHeaderLen+blockHeaderLen : len(b)-footerLen-4]
	_ = eachRecord(payload, records, func(r Record) error {
		p = binary.AppendUvarint(append(p, r.Type), uint64(len(r.Data)))
		p = append(p, r.Data...)
		return nil
	})
	return p
}

// FuzzJournal reads any bytes as a journal, and appends to it. What was read is
// read again, with what was appended behind it.
func FuzzJournal(f *testing.F) {
	whole := appendRecord(appendRecord(appendJournalHeader(nil, 1), 1, []byte("one")), 2, []byte("two"))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole[:len(whole)-1]), whole...))
	f.Add(append(make([]byte, journalHeaderLen), whole...))
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := newMemFS()
		disk.set(journalName(1), b)
		read := func(l *memFS) (d *Dir, all []string) {
			d, found, err := openFS(l, Restore{Journal: func(r []byte) error { all = append(all, string(r)); return nil }})
			if err != nil {
				t.Skip(err)
			}
			if int(found.Journal.Records) != len(all) {
				t.Errorf("%+v", found.Journal)
			}
			return d, all
		}
		d, before := read(disk)
		if err := d.Journal().AppendWait([]byte("new")); err != nil {
			t.Error(err)
		}
		_ = d.Close()
		d, after := read(disk)
		_ = d.Close()
		if len(after) != len(before)+1 || after[len(before)] != "new" {
			t.Errorf("%q and new made %q", before, after)
		}
	})
}

// TestNumbersThatAreUsedUp opens files with the largest numbers that are read: what is
// acknowledged after them must be read again, so the directory is not opened.
func TestNumbersThatAreUsedUp(t *testing.T) {
	snapshot := func(generation, covered uint64) []byte {
		disk := newMemFS()
		w := newSnapshotWriter(func() (file, error) { return disk.create("x") }, snapshotHeader{generation: generation, covered: covered})
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
		return disk.read("x")
	}
	journal := func(number uint64) []byte {
		return appendRecord(appendJournalHeader(nil, number), number, []byte("crafted"))
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		opens bool
	}{
		{journalName(1), journal(maxNumber), false},
		{journalName(1), journal(maxStart), false},
		{journalName(1), journal(maxStart - 3), true},
		{journalName(maxNumber - 1), journal(1), false},
		{journalName(maxNumber-1) + badSuffix, journal(1), false},
		{journalName(maxStart - 2), journal(1), true},
		{snapshotName(1), snapshot(1, maxNumber), false},
		{snapshotName(maxNumber - 1), snapshot(maxNumber-1, 0), false},
		{snapshotName(maxStart - 1), snapshot(maxStart-1, 0), true},
	} {
		disk := newMemFS()
		disk.set(tt.name, tt.bytes)
		d, _, err := openFS(disk, Restore{})
		if !tt.opens {
			if err == nil || !strings.Contains(err.Error(), "must be up to 4611404543450677248") || !bytes.Equal(disk.read(tt.name), tt.bytes) {
				t.Errorf("%s of %d bytes: %v, want an error, and the file unchanged", tt.name, len(tt.bytes), err)
			}
			if err == nil {
				_ = d.Close()
			}
			continue
		}
		if err != nil {
			t.Errorf("%s of %d bytes: %v", tt.name, len(tt.bytes), err)
			continue
		}
		if err := d.Journal().AppendWait([]byte("new")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(d.WriteSnapshot(func(w *SnapshotWriter) error { return w.Add(1, []byte("state")) }), d.Journal().AppendWait([]byte("newer")), d.Close()); err != nil {
			t.Error(err)
		}
		var read []string
		d, _, err = openFS(disk, Restore{
			Snapshot: func(r Record) error { read = append(read, string(r.Data)); return nil },
			Journal:  func(r []byte) error { read = append(read, string(r)); return nil },
		})
		if err != nil || fmt.Sprint(read) != "[state newer]" {
			t.Errorf("%s of %d bytes: %q was read, %v, want the snapshot and the record after it", tt.name, len(tt.bytes), read, err)
			continue
		}
		_ = d.Close()
	}
}

// TestMemoryOfReading reads files that claim much: memory stays below twice their
// length, and some more for what does not depend on it.
func TestMemoryOfReading(t *testing.T) {
	const room = 64 << 10
	claims := map[string][]byte{}
	for _, size := range []int{100, 10_000, 1 << 20} {
		h := snapshotHeader{generation: 1}
		b := append(h.append(nil), make([]byte, size)...)
		binary.LittleEndian.PutUint32(b[snapshotHeaderLen:], maxPayload)
		claims[snapshotName(1)] = b
		b = append(appendJournalHeader(nil, 1), make([]byte, size)...)
		binary.LittleEndian.PutUint32(b[journalHeaderLen:], MaxRecord)
		binary.LittleEndian.PutUint64(b[journalHeaderLen+4:], 1)
		claims[journalName(1)] = b
		for name, b := range claims {
			disk := newMemFS()
			disk.set(name, b)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, _, err := openFS(disk, Restore{})
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			_ = d.Close()
			if used := int(after.TotalAlloc - before.TotalAlloc); used > 2*len(b)+room {
				t.Errorf("%s of %d bytes took %d", name, len(b), used)
			}
		}
	}
}

// TestSearchIsBounded looks for whole records in what was made to look like the
// beginning of one everywhere.
func TestSearchIsBounded(t *testing.T) {
	file := append(appendJournalHeader(nil, 1), bytes.Repeat([]byte{1, 1, 0, 0}, 200_000)...)
	scanned := func(b []byte) scan {
		disk := newMemFS()
		disk.set("x", b)
		f, _ := disk.open("x")
		s, err := scanJournal(f, func(uint64, []byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := scanned(file); s != (scan{torn: 800_000}) {
		t.Errorf("found a record where there is none: %+v", s)
	}
	file = append(appendRecord(file, 7, []byte("seven")), "torn"...)
	if s := scanned(file); s != (scan{last: 7, damaged: 800_000, torn: 4}) {
		t.Errorf("%+v; want the record 7", s)
	}
}

// BenchmarkVerify reads a snapshot of 16 MiB from memory.
func BenchmarkVerify(b *testing.B) {
	var records []Record
	for range 250_000 {
		records = append(records, Record{1, make([]byte, 62)})
	}
	disk := newMemFS()
	file := snapshotOf(1, records)
	disk.set("x", file)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		f, _ := disk.open("x")
		if _, err := readSnapshot(f, nil); err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
}
