package journal

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// fileOf returns a file with a snapshot of some records, and records behind it.
func fileOf(snapshot, appended []Record) []byte {
	disk := newMemFS()
	w := newWriter(disk, 1)
	for _, r := range snapshot {
		_ = w.add(r.Type, r.Data)
	}
	_ = w.endSnapshot()
	for _, r := range appended {
		_ = w.add(r.Type, r.Data)
	}
	_ = w.end()
	return disk.read(tempName)
}

// FuzzOpen reads any bytes as a file, also with all checksums corrected, and appends to it. What was read is read again,
// with what was appended behind it, and once more after a snapshot.
func FuzzOpen(f *testing.F) {
	one, two := Record{1, []byte("one")}, Record{2, nil}
	whole := fileOf([]Record{one, two}, []Record{two, one})
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole[:len(whole)-1]), whole...))
	f.Add(append(make([]byte, headerLen), whole...))
	f.Add(fileOf(nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resealed(b)} {
			disk := newMemFS()
			disk.set(stateName, b)
			read := func() (j *Journal, found Found, all []Record) {
				j, found, err := openFS(disk, func(r Record) error {
					all = append(all, Record{r.Type, bytes.Clone(r.Data)})
					return nil
				})
				if err != nil {
					t.Skip(err)
				}
				if found.Snapshot+found.Appended != uint64(len(all)) || found.Damaged+found.Cut+int64(found.Missing) > 0 && found.Problems == nil {
					t.Errorf("%d were read, found %+v", len(all), found)
				}
				return j, found, all
			}
			j, _, before := read()
			if err := j.AppendWait([]byte("new")); err != nil {
				t.Error(err)
			}
			_ = j.Close()
			want := append(before, Record{'j', []byte("new")})
			j, _, after := read()
			if !equal(after, want) {
				t.Errorf("%q and new made %q", before, after)
			}
			err := j.WriteSnapshot(func(add func(byte, []byte) error) error {
				for _, r := range want {
					_ = add(r.Type, r.Data)
				}
				return nil
			})
			if err != nil || j.Close() != nil {
				t.Error(err)
			}
			j, found, after := read()
			if _ = j.Close(); !equal(after, want) || found.Problems != nil {
				t.Errorf("after a snapshot %q; want %q: %+v", after, want, found)
			}
		}
	})
}

func equal(a, b []Record) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Type != b[i].Type || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

// resealed returns b with right checksums for its header and for what looks like records, so that a
// fuzzer gets past them.
func resealed(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < headerLen {
		return b
	}
	copy(b, appendPrefix(nil, version))
	binary.LittleEndian.PutUint32(b[headerLen-4:], checksum(0, b[:headerLen-4]))
	for rest := b[headerLen:]; len(rest) > recordHeaderLen && mayBe(rest, int64(len(rest))); rest = rest[sizeOf(rest):] {
		binary.LittleEndian.PutUint32(rest[12:], sumOf(rest[:sizeOf(rest)]))
	}
	return b
}

// TestImpossibleNumbers reads headers and records with numbers that no writer uses: records appended then are read again.
func TestImpossibleNumbers(t *testing.T) {
	for _, h := range []header{
		{first: 1},
		{first: maxFirst},
		{first: maxFirst + 1},
		{first: 1<<64 - 1},
		{},
		{first: 1, records: 1<<64 - 1},
		{first: maxFirst, records: maxFirst},
		{first: 1, records: 5},
	} {
		for _, number := range []uint64{h.first, h.first + 1, 1, maxFirst, 1<<64 - 1, 0} {
			b := h.append(nil)
			records := appendRecord(nil, 1, []byte("crafted"))
			seal(records, number)
			disk := newMemFS()
			disk.set(stateName, append(b, records...))
			j, _, err := openFS(disk, nil)
			if err != nil {
				t.Errorf("%+v: %v", h, err)
				continue
			}
			if err := j.AppendWait([]byte("new")); err != nil {
				t.Error(err)
			}
			_ = j.Close()
			last := ""
			j, _, err = openFS(disk, func(r Record) error { last = string(r.Data); return nil })
			if err != nil || j.Close() != nil || last != "new" {
				t.Errorf("%+v and a record %d: %q is the last, %v", h, number, last, err)
			}
		}
	}
}

// TestMemoryOfReading reads files that claim much: memory stays below twice their
// length, and some more for what does not depend on it.
func TestMemoryOfReading(t *testing.T) {
	const fixed = 64 << 10
	for _, size := range []int{100, 10_000, 1 << 20} {
		h := header{first: 1}
		b := append(h.append(nil), make([]byte, size)...)
		binary.LittleEndian.PutUint32(b[headerLen:], 1+MaxRecord)
		binary.LittleEndian.PutUint64(b[headerLen+4:], 1)
		disk := newMemFS()
		disk.set(stateName, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j, _, err := openFS(disk, nil)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		_ = j.Close()
		if used := int(after.TotalAlloc - before.TotalAlloc); used > 2*len(b)+fixed {
			t.Errorf("%d bytes took %d", len(b), used)
		}
	}
}

// TestSearchIsBounded searches for whole records in data that looks like the beginning of one everywhere.
func TestSearchIsBounded(t *testing.T) {
	h := header{first: 1}
	file := append(h.append(nil), bytes.Repeat([]byte{1, 1, 0, 0}, 200_000)...)
	found := func(b []byte) Found {
		disk := newMemFS()
		disk.set(stateName, b)
		j, found, err := openFS(disk, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = j.Close()
		found.Problems = nil
		return found
	}
	if got := found(bytes.Clone(file)); got.Cut != 800_000 || got.Damaged != 0 {
		t.Errorf("found a record where there is none: %+v", got)
	}
	seven := appendRecord(nil, 1, []byte("seven"))
	seal(seven, 7)
	file = append(append(file, seven...), "torn"...)
	if got := found(file); got.Appended != 1 || got.Missing != 6 || got.Damaged != 800_000 || got.Cut != 4 {
		t.Errorf("%+v; want the record 7", got)
	}
}
