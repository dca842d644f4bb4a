package resp_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
)

var (
	smallReplies = resp.ReplyLimits{Reply: 100, Elements: 12, Line: 32, Buffer: 16}
	usualReplies = resp.ReplyLimits{Reply: 64 << 20, Elements: 1 << 20, Line: 64 << 10, Buffer: 4096}
)

// readReplies reads replies that come in cut, to their end.
func readReplies(cut []string, limits resp.ReplyLimits) (o outcome) {
	r, err := resp.NewReplyReader(new(chunks(slices.Clone(cut))), limits)
	if err != nil {
		return outcome{end: err.Error()}
	}
	for {
		v, err := r.Next()
		if err != nil {
			o.end = err.Error()
			return o
		}
		o.commands = append(o.commands, []string{show(v)})
	}
}

// replyStreams has the examples of the RESP specification and what should
// never come.
var replyStreams = []string{
	"+OK\r\n",
	"+\r\n",
	"-ERR unknown command 'asdf'\r\n",
	"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
	":0\r\n:1000\r\n:-1\r\n",
	":9223372036854775807\r\n:-9223372036854775808\r\n",
	"$5\r\nhello\r\n$0\r\n\r\n",
	"$-1\r\n*-1\r\n_\r\n",
	"*0\r\n",
	"*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n",
	"*3\r\n:1\r\n:2\r\n:3\r\n",
	"*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n$5\r\nhello\r\n",
	"*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n",
	"*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n",
	"#t\r\n#f\r\n",
	",1.23\r\n,10\r\n,inf\r\n,-inf\r\n,nan\r\n,-1e-7\r\n,1.5E+300\r\n",
	"(3492890328409238509324850943850943825024385\r\n(-1\r\n",
	"!21\r\nSYNTAX invalid syntax\r\n",
	"=15\r\ntxt:Some string\r\n=4\r\nmkd:\r\n",
	"%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n",
	"%0\r\n~0\r\n",
	"~5\r\n+orange\r\n+apple\r\n#t\r\n:100\r\n:999\r\n",
	"|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n*2\r\n:2039123\r\n:9543892\r\n",
	"*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n",
	"|0\r\n+OK\r\n|1\r\n+a\r\n+b\r\n|1\r\n|1\r\n+c\r\n+d\r\n+e\r\n:1\r\n+OK\r\n",
	">4\r\n+pubsub\r\n+message\r\n+somechannel\r\n+this is the message\r\n+OK\r\n",
	"+OK\r\n>1\r\n+x\r\n:1\r\n",
	">0\r\n",
	"*1\r\n>1\r\n+x\r\n",
	"|1\r\n>0\r\n+x\r\n+y\r\n",
	"",
	"+",
	"+OK",
	"+OK\r",
	"+OK\n",
	"+O\rK\r\n",
	"+OK\r\r\n",
	"PONG\r\n",
	"\r\n",
	"\x1b[2J\r\n",
	":+5\r\n",
	":-0\r\n",
	":01\r\n",
	":\r\n",
	":9223372036854775808\r\n",
	":1 \r\n",
	":1\rx",
	",+1\r\n", ",.5\r\n", ",1.\r\n", ",0x1p3\r\n", ",1_0\r\n", ",Inf\r\n", ",infinity\r\n", ",NaN\r\n", ",1e999\r\n", ",1e\r\n", ",-\r\n", ",\r\n", ",1e5x\r\n",
	"(+1\r\n", "(\r\n", "(1.5\r\n", "(-\r\n",
	"#\r\n", "#x\r\n", "#true\r\n",
	"_x\r\n",
	"$-2\r\n", "$+1\r\n", "$01\r\n", "$\r\n", "$1\r\nab\r\n", "$1\r\na\r\r\n", "$1\nx\r\n",
	"!-1\r\n", "=-1\r\n", "=3\r\ntxt\r\n", "=3\r\n", "=5\r\ntxt;a\r\n",
	"%-1\r\n", "~-1\r\n", ">-1\r\n", "|-1\r\n", "*-2\r\n",
	"$?\r\n;4\r\nHell\r\n;0\r\n", "*?\r\n:1\r\n.\r\n",
	"$999999999999999999\r\n", "$536870912\r\n", "$536870913\r\n", "*999999999999999999\r\n", "%999999999999999999\r\n", "*9999999999999999999\r\n",
	"*1048576\r\n", "*1048575\r\n", "%6\r\n", "%5\r\n",
	strings.Repeat("*1\r\n", 32) + ":1\r\n",
	strings.Repeat("*1\r\n", 33) + ":1\r\n",
	strings.Repeat("*1\r\n", 32) + "*0\r\n",
	strings.Repeat("*1\r\n", 100_000)[:400],
	"*11\r\n" + strings.Repeat(":1\r\n", 11),
	"*12\r\n" + strings.Repeat(":1\r\n", 12),
	"*2\r\n*10\r\n",
	"*2\r\n*9\r\n" + strings.Repeat("*0\r\n", 10),
	"+" + strings.Repeat("x", 32) + "\r\n",
	"+" + strings.Repeat("x", 33) + "\r\n",
	"+" + strings.Repeat("x", 40),
	"$93\r\n" + strings.Repeat("x", 93) + "\r\n:1\r\n",
	"$94\r\n" + strings.Repeat("x", 94) + "\r\n:1\r\n",
	"*4\r\n$60\r\n" + strings.Repeat("x", 60) + "\r\n+abcdefghi\r\n+abcdefghi\r\n+abcdefgh\r\n",
	"*4\r\n$60\r\n" + strings.Repeat("x", 60) + "\r\n+abcdefghi\r\n+abcdefghi\r\n+\r\n",
}

// checkReplySplits is checkSplits for replies.
func checkReplySplits(parse func([]string, resp.ReplyLimits) outcome, stream string, limits resp.ReplyLimits) error {
	want := replyReference(stream, limits)
	if got := parse(singles(stream), limits); !got.equal(want) {
		return fmt.Errorf("%q in single bytes:\ngot  %v\nwant %v", stream, got, want)
	}
	for i := range len(stream) + 1 {
		if got := parse([]string{stream[:i], stream[i:]}, limits); !got.equal(want) {
			return fmt.Errorf("%q cut at %d:\ngot  %v\nwant %v", stream, i, got, want)
		}
	}
	return nil
}

func TestEverySplitGivesTheSameReplies(t *testing.T) {
	for _, stream := range replyStreams {
		for _, limits := range []resp.ReplyLimits{smallReplies, usualReplies} {
			if err := checkReplySplits(readReplies, stream, limits); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReplySplitCheckSeesAForgetfulReader plants the fault that the check is
// for.
func TestReplySplitCheckSeesAForgetfulReader(t *testing.T) {
	forgetful := func(cut []string, limits resp.ReplyLimits) (all outcome) {
		for _, piece := range cut {
			o := readReplies([]string{piece}, limits)
			all.commands, all.end = append(all.commands, o.commands...), o.end
		}
		return all
	}
	stream := "*2\r\n:1\r\n:2\r\n"
	if got, want := forgetful([]string{stream}, usualReplies), replyReference(stream, usualReplies); !got.equal(want) {
		t.Errorf("not cut: got %v, want %v", got, want)
	}
	if checkReplySplits(forgetful, stream, usualReplies) == nil {
		t.Error("a reader that forgets passes the check of splits")
	}
}

// randomReply appends any reply, with aggregates down to a depth.
func randomReply(rng *rand.Rand, w *resp.Writer, depth int) {
	kind := rng.IntN(16)
	if depth == 0 && kind >= 12 {
		kind -= 12
	}
	n := rng.IntN(4)
	switch kind {
	case 0:
		w.Simple("simple")
	case 1:
		w.Error("ERR", "error")
	case 2, 3:
		w.Int(int64(rng.Uint64()) >> rng.IntN(64))
	case 4, 5:
		w.Bulk(randomBytes(rng, rng.IntN(30)))
	case 6:
		w.Null()
	case 7:
		w.Bool(rng.IntN(2) == 0)
	case 8:
		w.Double(math.Float64frombits(rng.Uint64()))
	case 9:
		w.Verbatim("txt", string(randomBytes(rng, n)))
	case 10:
		w.Raw([]byte([]string{"$-1\r\n", "*-1\r\n", "(12345678901234567890\r\n", "!3\r\nERR\r\n"}[n]))
	case 11:
		w.Raw([]byte("|1\r\n+a\r\n"))
		randomReply(rng, w, 0)
		w.Int(1)
	case 12:
		w.Array(n)
	case 13:
		w.Set(n)
	case 14:
		w.Map(n)
		n *= 2
	case 15:
		w.Push(n)
	}
	for range n {
		if kind >= 12 {
			randomReply(rng, w, depth-1)
		}
	}
}

func TestRandomRepliesAgainstTheReference(t *testing.T) {
	rng, seed := seeded(t)
	rounds := 20_000
	if longForm() {
		rounds = 10_000_000
	}
	faults := map[string]int{}
	for round := range rounds {
		w := new(resp.Writer)
		if err := w.SetVersion(3); err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(4) {
			randomReply(rng, w, rng.IntN(4))
		}
		stream, limits := spoilt(rng, w.Bytes()), usualReplies
		if rng.IntN(2) == 0 {
			limits = smallReplies
		}
		cut := randomCut(rng, stream)
		got, want := readReplies(cut, limits), replyReference(stream, limits)
		faults[want.end]++
		if !got.equal(want) {
			t.Fatalf("seed %d, round %d: %q:\ngot  %v\nwant %v", seed, round, cut, got, want)
		}
	}
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, fault("invalid number in a reply"), fault("invalid length in a reply"),
		fault("too big reply"), fault("too many elements in a reply"), fault("push inside a reply"),
	} {
		if faults[end.Error()] == 0 {
			t.Errorf("seed %d: no stream ended with %q", seed, end)
		}
	}
}

func TestValues(t *testing.T) {
	r := newReplyReader(t, strings.NewReader("-NOPERM not you\r\n!9\r\nERR a b c\r\n:7\r\n,2.5\r\n$1\r\nx\r\n=5\r\nmkd:x\r\n_\r\n"))
	next := func() resp.Value {
		v, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := next()
	e, ok := v.Err().(resp.ReplyError)
	if !ok || e.Code() != "NOPERM" || e.Error() != "NOPERM not you" || v.Kind != resp.KindError {
		t.Errorf("error: %v %q", v.Kind, v.Err())
	}
	if e, ok = next().Err().(resp.ReplyError); !ok || e.Code() != "ERR" || e.Error() != "ERR a b c" {
		t.Errorf("bulk error: %q", e)
	}
	if v = next(); v.Float() != 7 || v.Err() != nil || v.IsNull() || v.Format() != "" {
		t.Errorf("int: %v", show(v))
	}
	if v = next(); v.Float() != 2.5 {
		t.Errorf("double: %v", show(v))
	}
	if v = next(); !math.IsNaN(v.Float()) {
		t.Errorf("bulk: %v is %v", show(v), v.Float())
	}
	if v = next(); v.Format() != "mkd" || string(v.Text) != "x" {
		t.Errorf("verbatim: %v", show(v))
	}
	if v = next(); !v.IsNull() {
		t.Errorf("null: %v", show(v))
	}
	if s := resp.Kind('?').String(); s != "kind '?'" {
		t.Errorf("an unknown kind is called %s", s)
	}
}

// TestCloneSharesNothing: a view changes with the next reply, its clone does
// not.
func TestCloneSharesNothing(t *testing.T) {
	r := newReplyReader(t, &repeatOnce{texts: []string{"*2\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n", "*2\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n"}})
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	clone, before := first.Clone(), show(first)
	if _, err = r.Next(); err != nil {
		t.Fatal(err)
	}
	if show(clone) != before {
		t.Errorf("the clone became %s", show(clone))
	}
	if show(first) == before {
		t.Error("the view did not change: this test does not tell a clone from a view")
	}
}

// repeatOnce gives each text in a read of its own.
type repeatOnce struct{ texts []string }

func (s *repeatOnce) Read(p []byte) (int, error) {
	if len(s.texts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.texts[0])
	s.texts = s.texts[1:]
	return n, nil
}

func TestReplyReaderMemory(t *testing.T) {
	big := "*3\r\n$1000000\r\n" + strings.Repeat("x", 1_000_000) + "\r\n:1\r\n$1\r\ny\r\n"
	r := newReplyReader(t, io.MultiReader(strings.NewReader(big), strings.NewReader(":1\r\n:2\r\n"), bytes.NewReader(nil)))
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if r.BufferSize() != 4096 || r.Strays() != 0 {
		t.Errorf("a buffer of %d bytes and %d views of former ones are kept of a reply of 1 MB", r.BufferSize(), r.Strays())
	}
	// What a server announces takes no memory before it comes.
	announced := "*1000000\r\n$60000000\r\nxx"
	r = newReplyReader(t, strings.NewReader(announced))
	if _, err := r.Next(); err != io.ErrUnexpectedEOF || r.BufferSize() != 4096 || !r.Partial() {
		t.Errorf("%v with a buffer of %d bytes", err, r.BufferSize())
	}
}

func TestReplyLimitsAreJudged(t *testing.T) {
	for _, c := range []struct {
		limits resp.ReplyLimits
		want   string
	}{
		{resp.ReplyLimits{Reply: -1}, "resp: ReplyLimits.Reply is -1; it must be from 64 to 536870912, or 0 for 67108864"},
		{resp.ReplyLimits{Elements: 1 << 30}, "resp: ReplyLimits.Elements is 1073741824; it must be from 1 to 16777216, or 0 for 1048576"},
		{resp.ReplyLimits{Line: 31}, "resp: ReplyLimits.Line is 31; it must be from 32 to 1048576, or 0 for 65536"},
		{resp.ReplyLimits{Buffer: 1}, "resp: ReplyLimits.Buffer is 1; it must be from 16 to 1048576, or 0 for 4096"},
	} {
		if _, err := resp.NewReplyReader(strings.NewReader(""), c.limits); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := resp.NewReplyReader(nil, resp.ReplyLimits{}); err == nil {
		t.Error("no source is taken for one")
	}
}
