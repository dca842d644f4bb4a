package resp_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
)

// A repeating source gives the same bytes again and again, one whole copy a
// Read where it fits.
type repeating struct {
	text []byte
	at   int
}

func (s *repeating) Read(p []byte) (int, error) {
	n := copy(p, s.text[s.at:])
	s.at = (s.at + n) % len(s.text)
	return n, nil
}

func take() []byte {
	return resp.AppendCommand(nil, "TAKE", "rule", "user:123456")
}

func incr() []byte {
	return resp.AppendCommand(nil, "INCRBY", "user:123456", "1")
}

func newReader(_ testing.TB, src io.Reader) *resp.Reader { return resp.NewReader(src, resp.Limits{}) }

// BenchmarkRead parses commands that come in alone, or 100 in a read.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"take/alone", take()},
		{"take/by100", bytes.Repeat(take(), 100)},
		{"incrby/alone", incr()},
		{"incrby/by100", bytes.Repeat(incr(), 100)},
		{"inline/alone", []byte("TAKE rule user:123456\r\n")},
		{"inline/by100", bytes.Repeat([]byte("TAKE rule user:123456\r\n"), 100)},
		{"check/by100", bytes.Repeat(resp.AppendCommand(nil, "CHECK", "client", "203.0.113.7", "method", "POST", "path", "/login"), 100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newReader(b, &repeating{text: c.text})
			b.ReportAllocs()
			for b.Loop() {
				if args, err := r.Next(); err != nil || len(args) < 3 {
					b.Fatal(args, err)
				}
			}
		})
	}
}

// decision appends the reply to TAKE.
func decision(w *resp.Writer) {
	w.Array(7)
	w.Ints(1, 1000, 412, 0, 59123)
	w.BulkString("per-client")
	w.Int(0)
}

// BenchmarkAnswer is what the codec costs a decision: to parse TAKE and to
// answer it, with a flush where no other command is buffered.
func BenchmarkAnswer(b *testing.B) {
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"alone", take()},
		{"by100", bytes.Repeat(take(), 100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, w := newReader(b, &repeating{text: c.text}), resp.NewWriter(io.Discard)
			b.ReportAllocs()
			for b.Loop() {
				args, err := r.Next()
				if err != nil || len(args) != 3 {
					b.Fatal(args, err)
				}
				decision(w)
				if !r.Ready() || w.Full() {
					must.Do(b, w.Flush())
				}
			}
		})
	}
}

// BenchmarkWrite appends one reply.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name  string
		reply func(w *resp.Writer)
	}{
		{"decision", decision},
		{"int", func(w *resp.Writer) { w.Int(123456) }},
		{"bulk", func(w *resp.Writer) { w.BulkString("per-client") }},
		{"error", func(w *resp.Writer) { w.Error("OVERLOAD", "too many commands wait: try again") }},
		{"double", func(w *resp.Writer) { w.Double(123.5) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := new(resp.Writer)
			b.ReportAllocs()
			for b.Loop() {
				c.reply(w)
				w.Discard()
			}
		})
	}
}

// BenchmarkAppendCommand is the client's side of TAKE.
func BenchmarkAppendCommand(b *testing.B) {
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = resp.AppendCommand(dst[:0], "TAKE", "rule", "user:123456")
	}
}
