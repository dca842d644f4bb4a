package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// shownReplies reads a stream that comes in these pieces, and writes each reply and the
// error at the end as text.
func shownReplies(pieces []string, limits resp.Limits) string {
	src := chunks(pieces)
	r := resp.NewReplyReader(&src, limits)
	var out strings.Builder
	for {
		values, err := r.Next()
		if err != nil {
			fmt.Fprintf(&out, "%v", err)
			return out.String()
		}
		for _, v := range values {
			fmt.Fprintf(&out, "%c%d%q ", v.Kind, v.N, v.Text)
		}
		out.WriteByte('\n')
	}
}

// TestReplyReader reads replies with all kinds of values, and has each fault in its words. TestScanner has the grammar.
func TestReplyReader(t *testing.T) {
	limits, long := resp.Limits{Bulk: 100, Args: 8, Command: 400, Buffer: 16}, strings.Repeat("a", 300)
	for _, tt := range []struct{ stream, want string }{
		{"+OK\r\n-ERR no\r\n:-7\r\n", "+0\"OK\" \n-0\"ERR no\" \n:-7\"\" \nEOF"},
		{"+" + long + "\r\n", "+0\"" + long + "\" \nEOF"},
		{"$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n", "$0\"a\\r\\n\" \n$0\"\" \n_0\"\" \n_0\"\" \n_0\"\" \nEOF"},
		{"*2\r\n:1\r\n*1\r\n+a\r\n*0\r\n", "*2\"\" :1\"\" *1\"\" +0\"a\" \n*0\"\" \nEOF"},
		{"%1\r\n+a\r\n#t\r\n>2\r\n+hot\r\n#f\r\n~1\r\n,1.5\r\n=5\r\ntxt:x\r\n(12\r\n", "%2\"\" +0\"a\" #1\"\" \n>2\"\" +0\"hot\" #0\"\" \n~1\"\" ,0\"1.5\" \n=0\"txt:x\" \n(0\"12\" \nEOF"},
		{"*1\r\n", "unexpected EOF"},
		{"$3\r\nab", "unexpected EOF"},
		{":1\r\n|1\r\n+a\r\n+b\r\n", ":1\"\" \nProtocol error: not a reply"},
		{":" + long, "Protocol error: too long line in a reply"},
		{"$101\r\n", "Protocol error: invalid bulk length"},
		{"*7\r\n*1\r\n", "Protocol error: too many values in a reply"},
		{"*7\r\n" + strings.Repeat("$99\r\n"+long[:99]+"\r\n", 4), "Protocol error: too big reply"},
		{"*1\r\n>1\r\n", "Protocol error: a push message within a reply"},
	} {
		for _, pieces := range [][]string{{tt.stream}, singles(tt.stream)} {
			if got := shownReplies(pieces, limits); got != tt.want {
				t.Errorf("%q in %d pieces:\n got %s\nwant %s", tt.stream, len(pieces), got, tt.want)
			}
		}
	}
}

// randomReply appends a reply and its text as shownReplies writes it.
func randomReply(rng *rand.Rand, w *resp.Writer, out *strings.Builder, depth int) {
	kind := rng.IntN(8)
	if depth == 0 {
		kind = rng.IntN(5)
	}
	n := rng.IntN(4)
	switch kind {
	case 0:
		w.Int(int64(n) - 2)
		fmt.Fprintf(out, ":%d\"\" ", n-2)
	case 1:
		text := bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(3)*rng.IntN(400))
		w.Bulk(text)
		fmt.Fprintf(out, "$0%q ", text)
	case 2:
		w.Simple("PONG")
		out.WriteString("+0\"PONG\" ")
	case 3:
		w.Null()
		out.WriteString("_0\"\" ")
	case 4:
		w.Error("ERR", "no")
		out.WriteString("-0\"ERR no\" ")
	default:
		head, elements := w.Array, n
		mark := byte('*')
		switch kind {
		case 6:
			head, mark = w.Set, '~'
		case 7:
			head, mark, elements = w.Map, '%', 2*n
		}
		head(n)
		fmt.Fprintf(out, "%c%d\"\" ", mark, elements)
		for range elements {
			randomReply(rng, w, out, depth-1)
		}
	}
}

// A ReplyReader reads the output of a Writer, however it is split.
func TestReplyReaderReadsWriter(t *testing.T) {
	rng, _ := seeded(t)
	rounds := 200
	if longForm() {
		rounds = 100_000
	}
	for range rounds {
		var stream bytes.Buffer
		var want strings.Builder
		w := resp.NewWriter(&stream)
		w.SetVersion(3)
		for range rng.IntN(5) {
			randomReply(rng, w, &want, 3)
			want.WriteByte('\n')
		}
		must.Do(t, w.Flush())
		want.WriteString("EOF")
		if got := shownReplies(randomCut(rng, stream.String()), resp.Limits{Buffer: 16}); got != want.String() {
			t.Fatalf("%q:\n got %s\nwant %s", stream.String(), got, want.String())
		}
	}
}

// FuzzReplyReader reads replies in one piece and in several, and compares with resptest,
// which was written after the specification.
func FuzzReplyReader(f *testing.F) {
	f.Add("*2\r\n$1\r\na\r\n>1\r\n#t\r\n", uint64(1))
	f.Add("%1\r\n+a\r\n_\r\n$-1\r\n:12\r\n,1.5\r\n-ERR no\r\n", uint64(2))
	f.Add("$100000\r\nab\r\n", uint64(3))
	limits := resp.Limits{Bulk: 60, Args: 20, Command: 100, Buffer: 16}
	f.Fuzz(func(t *testing.T, stream string, seed uint64) {
		cut := randomCut(rand.New(rand.NewPCG(seed, 0)), stream)
		whole := shownReplies([]string{stream}, limits)
		if pieces := shownReplies(cut, limits); pieces != whole {
			t.Fatalf("%q:\n  whole %s\npieces %s", stream, whole, pieces)
		}
		r, ref := resp.NewReplyReader(strings.NewReader(stream), limits), resptest.NewReader(strings.NewReader(stream))
		for {
			got, err := r.Next()
			if err != nil {
				if _, ok := errors.AsType[resp.ProtocolError](err); !ok && err != io.EOF && err != io.ErrUnexpectedEOF {
					t.Fatal(err)
				}
				return
			}
			want, err := ref.Next()
			if err != nil {
				t.Fatalf("%q: %v was read, but %v", stream, got, err)
			}
			if rest := same(t, got, want); len(rest) != 0 {
				t.Fatalf("%q: %v is more than %v", stream, rest, want)
			}
		}
	})
}

// same compares the first of values, with its elements, with a reference, and returns
// those after it.
func same(t *testing.T, values []resp.Value, want resptest.Value) []resp.Value {
	t.Helper()
	v := values[0]
	text := string(v.Text)
	switch v.Kind {
	case resp.KindInt:
		text = fmt.Sprint(v.N)
	case resp.KindBool:
		text = string("ft"[v.N])
	}
	if v.Kind != want.Kind || text != want.Text {
		t.Fatalf("%c %q, want %c %q", v.Kind, text, want.Kind, want.Text)
	}
	values = values[1:]
	for _, e := range want.Elems {
		values = same(t, values, e)
	}
	return values
}

func TestReplyReaderDoesNotAllocate(t *testing.T) {
	stream := []byte(strings.Repeat("*8\r\n:1\r\n:5\r\n:4\r\n:0\r\n:600000\r\n$5\r\nlogin\r\n:0\r\n:1\r\n", 40))
	r := resp.NewReplyReader(&repeating{text: stream}, resp.Limits{})
	next := func() {
		if v, err := r.Next(); err != nil || len(v) != 9 {
			t.Fatal(v, err)
		}
	}
	for range 10_000 {
		next()
	}
	if n := testing.AllocsPerRun(1000, next); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReplyReader(b *testing.B) {
	const reply = "*7\r\n:1\r\n:5\r\n:4\r\n:0\r\n:600000\r\n$5\r\nlogin\r\n:0\r\n"
	r := resp.NewReplyReader(&repeating{text: bytes.Repeat([]byte(reply), 100)}, resp.Limits{})
	b.ReportAllocs()
	for b.Loop() {
		must.Get(r.Next())(b)
	}
}
