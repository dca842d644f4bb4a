package snapshot

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// Entries of any lengths come back in their order, each in one chunk, and each
// chunk has the head.
func TestChunks(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var chunks [][]byte
	w := NewWriter(Hot, -5, func(c []byte) bool { chunks = append(chunks, bytes.Clone(c)); return true })
	w.Buf = AppendBytes(w.Buf, "head")
	w.EndHead()
	if !w.Flush() || len(chunks) > 0 {
		t.Fatal("a chunk without entries is yielded")
	}
	var want [][]byte
	for range 500 {
		e := make([]byte, rnd.IntN(1<<rnd.IntN(16)))
		for i := range e {
			e[i] = byte(rnd.Uint32())
		}
		want = append(want, e)
		w.Buf = AppendBytes(w.Buf, e)
		if w.Full() && !w.Flush() {
			t.Fatal("no more is wanted")
		}
	}
	w.Flush()
	if len(chunks) < 3 {
		t.Fatalf("%d chunks", len(chunks))
	}
	for _, c := range chunks {
		if len(c) > ChunkSize+1<<16 {
			t.Errorf("a chunk of %d bytes", len(c))
		}
		kind, r, written, err := Open(c, Table, Hot)
		if err != nil || kind != Hot || written != -5 || string(r.Bytes(10)) != "head" {
			t.Fatalf("kind %c, written %d, %v", kind, written, err)
		}
		for r.Len() > 0 {
			if e := r.Bytes(1 << 16); !bytes.Equal(e, want[0]) {
				t.Fatalf("an entry of %d bytes, want %d", len(e), len(want[0]))
			}
			want = want[1:]
		}
		if r.Failed() || r.Offset() != len(c)-checksumSize {
			t.Errorf("read up to %d of %d", r.Offset(), len(c))
		}
	}
	if len(want) > 0 {
		t.Errorf("%d entries are missing", len(want))
	}
}

func TestWriterStops(t *testing.T) {
	n := 0
	w := NewWriter(Table, 0, func([]byte) bool { n++; return false })
	w.Buf = append(w.Buf, 1)
	if w.Flush() || n != 1 || w.Entries() != 0 {
		t.Errorf("%d chunks, %d bytes", n, w.Entries())
	}
}

// Every change of a bit, and every cut, is found.
func TestOpenDamaged(t *testing.T) {
	var chunk []byte
	w := NewWriter(Bans, 1_700_000_000e9, func(c []byte) bool { chunk = bytes.Clone(c); return true })
	w.Buf = AppendBytes(w.Buf, "an entry")
	w.Flush()
	if _, _, _, err := Open(chunk, Bans); err != nil {
		t.Fatal(err)
	}
	for i := range chunk {
		if _, _, _, err := Open(chunk[:i], Bans); err == nil {
			t.Errorf("%d of %d bytes are a chunk", i, len(chunk))
		}
		for bit := range 8 {
			damaged := bytes.Clone(chunk)
			damaged[i] ^= 1 << bit
			if _, _, _, err := Open(damaged, Bans); err == nil {
				t.Errorf("with bit %d of byte %d changed it is a chunk", bit, i)
			}
		}
	}
}

func TestOpenOther(t *testing.T) {
	for _, c := range []struct {
		chunk []byte
		want  string
	}{
		{nil, "checksum"},
		{Seal([]byte{byte(Bans)}), "checksum"},
		{Seal([]byte{byte(Bans), Version + 1, 0}), "version 2: must be 1"},
		{Seal([]byte{byte(Table), Version, 0}), "unknown kind 'k'"},
		{Seal([]byte{byte(Bans), Version}), "unknown kind"},
	} {
		_, r, _, err := Open(c.chunk, Bans, Hot)
		if err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.chunk, err, c.want)
		}
	}
}

// Open and a Reader do not panic for any bytes, and read no more than the chunk.
func FuzzOpen(f *testing.F) {
	f.Add(Seal([]byte{byte(Bans), Version, 0, 3, 'a', 'b', 'c'}), false)
	f.Add([]byte{byte(Bans), Version, 0, 3, 'a', 'b', 'c', 0xff, 0xff, 0xff}, true)
	f.Fuzz(func(t *testing.T, chunk []byte, seal bool) {
		if seal {
			chunk = Seal(bytes.Clone(chunk))
		}
		_, r, _, err := Open(chunk, Bans)
		if err != nil {
			return
		}
		total := 0
		for r.Len() > 0 {
			before := r.Len()
			total += len(r.Bytes(1 << 20))
			if r.Len() >= before {
				t.Fatalf("%d bytes are left after %d", r.Len(), before)
			}
		}
		if total > len(chunk) {
			t.Errorf("%d bytes of %d", total, len(chunk))
		}
	})
}
