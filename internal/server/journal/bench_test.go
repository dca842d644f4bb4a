package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
)

// Two million records of 64 bytes: 128 MB.
const benchRecords = 2_000_000

func writeBench(b *testing.B, d *journal.Journal) {
	data := make([]byte, 62)
	must.Do(b, d.WriteSnapshot(func(add func(byte, []byte) error) error {
		for i := range benchRecords {
			data[i%len(data)]++
			if err := add(1, data); err != nil {
				return err
			}
		}
		return nil
	}))
}

func benchDir(b *testing.B) *journal.Journal {
	d, _, err := journal.Open(filepath.Join(b.TempDir(), "state"), ignored)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}

func BenchmarkWriteSnapshot(b *testing.B) {
	d := benchDir(b)
	b.SetBytes(64 * benchRecords)
	for b.Loop() {
		writeBench(b, d)
	}
}

func BenchmarkReadSnapshot(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state")
	d, _, err := journal.Open(path, ignored)
	if err != nil {
		b.Fatal(err)
	}
	writeBench(b, d)
	b.SetBytes(64 * benchRecords)
	for b.Loop() {
		n := 0
		count := func(journal.Record) error { n++; return nil }
		err := d.Close()
		if err == nil {
			d, _, err = journal.Open(path, count)
		}
		if err != nil || n != benchRecords {
			b.Fatal(n, err)
		}
	}
	_ = d.Close()
}

// BenchmarkAppend has 1 or 64 goroutines append records of 100 bytes, each waiting
// for the disk.
func BenchmarkAppend(b *testing.B) {
	record := make([]byte, 100)
	b.Run("1", func(b *testing.B) {
		j := benchDir(b)
		for b.Loop() {
			must.Do(b, j.AppendWait(record))
		}
	})
	b.Run("64", func(b *testing.B) {
		j := benchDir(b)
		b.SetParallelism(32) // of 2 cores
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				must.Do(b, j.AppendWait(record))
			}
		})
		b.ReportMetric(float64(b.N)/float64(j.Stats().Syncs), "records/sync")
	})
}

func BenchmarkAppendAsync(b *testing.B) {
	j := benchDir(b)
	record := make([]byte, 100)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p, err := j.Append('j', record)
		if err == nil && i%10_000 == 0 {
			err = p.Wait()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
