package resp_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// replies is one call of each method with its output in both versions.
var replies = []struct {
	name       string
	call       func(w *resp.Writer)
	two, three string
}{
	{"ok", func(w *resp.Writer) { w.OK() }, "+OK\r\n", "+OK\r\n"},
	{"simple", func(w *resp.Writer) { w.Simple("PONG") }, "+PONG\r\n", "+PONG\r\n"},
	{"error", func(w *resp.Writer) { w.Error("NORULE", "no rule x") }, "-NORULE no rule x\r\n", "-NORULE no rule x\r\n"},
	{"int", func(w *resp.Writer) { w.Int(42) }, ":42\r\n", ":42\r\n"},
	{"digit", func(w *resp.Writer) { w.Int(7) }, ":7\r\n", ":7\r\n"},
	{"zero", func(w *resp.Writer) { w.Int(0) }, ":0\r\n", ":0\r\n"},
	{"minus", func(w *resp.Writer) { w.Int(-1) }, ":-1\r\n", ":-1\r\n"},
	{"least", func(w *resp.Writer) { w.Int(math.MinInt64) }, ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
	{"most", func(w *resp.Writer) { w.Int(math.MaxInt64) }, ":9223372036854775807\r\n", ":9223372036854775807\r\n"},
	{"bulk", func(w *resp.Writer) { w.Bulk([]byte("a\r\n\x00")) }, "$4\r\na\r\n\x00\r\n", "$4\r\na\r\n\x00\r\n"},
	{"empty", func(w *resp.Writer) { w.Bulk(nil) }, "$0\r\n\r\n", "$0\r\n\r\n"},
	{"string", func(w *resp.Writer) { w.BulkString("hello world") }, "$11\r\nhello world\r\n", "$11\r\nhello world\r\n"},
	{"null", func(w *resp.Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
	{"null array", func(w *resp.Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
	{"array", func(w *resp.Writer) { w.Array(2); w.Int(1); w.Int(2) }, "*2\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n:2\r\n"},
	{"map", func(w *resp.Writer) { w.Map(1); w.BulkString("k"); w.Int(1) }, "*2\r\n$1\r\nk\r\n:1\r\n", "%1\r\n$1\r\nk\r\n:1\r\n"},
	{"set", func(w *resp.Writer) { w.Set(1); w.Int(1) }, "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
	{"push", func(w *resp.Writer) { w.Push(1); w.BulkString("x") }, "*1\r\n$1\r\nx\r\n", ">1\r\n$1\r\nx\r\n"},
	{"double", func(w *resp.Writer) { w.Double(3.25) }, "$4\r\n3.25\r\n", ",3.25\r\n"},
	{"whole double", func(w *resp.Writer) { w.Double(10) }, "$2\r\n10\r\n", ",10\r\n"},
	{"verbatim", func(w *resp.Writer) { w.Text("# a") }, "$3\r\n# a\r\n", "=7\r\ntxt:# a\r\n"},
	{
		"decision", func(w *resp.Writer) {
			w.Array(7)
			w.Ints(1, 60, 59, 0, 60000)
			w.BulkString("per-client")
			w.Int(0)
		},
		"*7\r\n:1\r\n:60\r\n:59\r\n:0\r\n:60000\r\n$10\r\nper-client\r\n:0\r\n",
		"*7\r\n:1\r\n:60\r\n:59\r\n:0\r\n:60000\r\n$10\r\nper-client\r\n:0\r\n",
	},
}

func TestEachReplyInBothVersions(t *testing.T) {
	var out bytes.Buffer
	w := resp.NewWriter(&out)
	for _, reply := range replies {
		for _, version := range []int{2, 3} {
			if w.SetVersion(version); w.Version() != version {
				t.Fatalf("version %d: %d", version, w.Version())
			}
			want := reply.two
			if version == 3 {
				want = reply.three
			}
			out.Reset()
			reply.call(w)
			must.Do(t, w.Flush())
			if out.String() != want {
				t.Errorf("%s in version %d: got %q, want %q", reply.name, version, out.String(), want)
			}
		}
	}
}

func TestNoByteEndsAnErrorEarly(t *testing.T) {
	for _, c := range []struct{ code, message, want string }{
		{"BADARG", "a\r\n+OK\r\n", "-BADARG a??+OK??\r\n"},
		{"BADARG", "\x00\x1b[31m\x7f\t", "-BADARG ??[31m??\r\n"},
		{"BADARG", "\u009b31m \u202e \u2028 \ufeff", "-BADARG ?31m ? ? ?\r\n"},
		{"BADARG", "\x9b \xff \xc3", "-BADARG ? ? ?\r\n"},
		{"BADARG", "grüße 日本", "-BADARG grüße 日本\r\n"},
		{"NO_RULE-2", "", "-NO_RULE-2 \r\n"},
		{"ERR", strings.Repeat("é", 600), "-ERR " + strings.Repeat("é", 512) + "...\r\n"},
		{"ERR", "x" + strings.Repeat("é", 600), "-ERR x" + strings.Repeat("é", 511) + "...\r\n"},
		{"ERR", strings.Repeat("\n", 2000), "-ERR " + strings.Repeat("?", 1024) + "...\r\n"},
	} {
		w := new(resp.Writer)
		w.Error(c.code, c.message)
		if got := string(w.Bytes()); got != c.want {
			t.Errorf("%q %q: got %q, want %q", c.code, c.message, got, c.want)
		}
	}
	w := new(resp.Writer)
	w.Simple("a\r\nb")
	if got := string(w.Bytes()); got != "+a??b\r\n" {
		t.Errorf("simple: %q", got)
	}
}

func TestAnyErrorTextIsOneReply(t *testing.T) {
	rng, seed := seeded(t)
	for range 5_000 {
		message := string(randomBytes(rng, rng.IntN(1200)))
		w := new(resp.Writer)
		w.Error("ERR", message)
		w.Int(1)
		r := resptest.NewReader(bytes.NewReader(w.Bytes()))
		v, err := r.Next()
		if err != nil || v.Kind != '-' || !utf8.ValidString(v.Text) {
			t.Fatalf("seed %d: %q: %v, %v", seed, message, v, err)
		}
		if v, err = r.Next(); err != nil || v.Int() != 1 {
			t.Fatalf("seed %d: behind %q: %v, %v", seed, message, v, err)
		}
	}
}

func TestFlushWritesOnceAndInOrder(t *testing.T) {
	var writes []string
	w := resp.NewWriter(writeFunc(func(p []byte) (int, error) {
		writes = append(writes, string(p))
		return len(p), nil
	}))
	if err := w.Flush(); err != nil || len(writes) != 0 {
		t.Errorf("a flush of nothing: %v, %q", err, writes)
	}
	w.Int(1)
	w.Int(2)
	must.Do(t, w.Flush())
	w.Int(3)
	must.Do(t, w.Flush())
	if strings.Join(writes, "|") != ":1\r\n:2\r\n|:3\r\n" {
		t.Errorf("writes: %q", writes)
	}
}

type writeFunc func(p []byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

func TestFlushErrorsStay(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, c := range []struct {
		name  string
		write writeFunc
		want  error
	}{
		{"error", func([]byte) (int, error) { return 0, broken }, broken},
		{"short", func(p []byte) (int, error) { return len(p) - 1, nil }, io.ErrShortWrite},
	} {
		calls := 0
		w := resp.NewWriter(writeFunc(func(p []byte) (int, error) { calls++; return c.write(p) }))
		for range 3 {
			w.Int(1)
			if err := w.Flush(); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
		if calls != 1 || len(w.Bytes()) != 0 {
			t.Errorf("%s: %d writes, %q left", c.name, calls, w.Bytes())
		}
	}
}

func TestWriterGivesMemoryBack(t *testing.T) {
	w := resp.NewWriter(io.Discard)
	if w.BufferSize() != 0 {
		t.Errorf("an idle connection has a write buffer of %d bytes", w.BufferSize())
	}
	flush := func() {
		must.Do(t, w.Flush())
	}
	w.Bulk(make([]byte, 1<<20))
	if !w.Full() {
		t.Error("not full with 1 MiB")
	}
	flush()
	if w.BufferSize() > 512 {
		t.Errorf("%d bytes are kept of a reply of 1 MiB", w.BufferSize())
	}
	w.Bulk(make([]byte, 10_000))
	flush()
	if w.BufferSize() < 10_000 {
		t.Errorf("%d bytes are left of a buffer that may be needed again", w.BufferSize())
	}
	for range 10 {
		w.OK()
		flush()
	}
	if w.BufferSize() > 512 {
		t.Errorf("%d bytes are kept after ten short replies", w.BufferSize())
	}
}
