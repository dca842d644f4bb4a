package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
)

// TestCommands has the commands in the specification, and the errors as clients see them.
func TestCommands(t *testing.T) {
	const prefix = "Protocol error: "
	for _, c := range []struct {
		stream string
		want   [][]string
		end    string
	}{
		{"*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n", [][]string{{"LLEN", "mylist"}}, "EOF"},
		{"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", [][]string{{"PING"}, {"QUIT"}}, "EOF"},
		{"PING\r\nEXISTS somekey\r\n", [][]string{{"PING"}, {"EXISTS", "somekey"}}, "EOF"},
		{"*0\r\n*-1\r\n\r\nPING\n", [][]string{{"PING"}}, "EOF"},
		{"PING", nil, "unexpected EOF"},
		{"PING\r\n*-2\r\n", [][]string{{"PING"}}, prefix + "invalid multibulk length"},
		{"*1025\r\n", nil, prefix + "invalid multibulk length"},
		{"*1\r\n$65537\r\n", nil, prefix + "invalid bulk length"},
		{"*2\r\n$4\r\nECHO\r\n*1\r\n$1\r\na\r\n", nil, prefix + "expected '$', got '*'"},
		{"*1\r\n\x00", nil, prefix + `expected '$', got '\x00'`},
		{"*1\r\n$4\r\nPINGxx", nil, prefix + "expected CR LF behind an argument"},
		{"GET \"a\r\n", nil, prefix + "unbalanced quotes in request"},
		{"GET a\x00b\r\n", nil, prefix + "NUL byte in inline request"},
		{"POST / HTTP/1.1\r\n", nil, prefix + "this is not an HTTP port"},
		{strings.Repeat("a", 65539), nil, prefix + "too big inline request"},
		{strings.Repeat("a ", 1025) + "\r\n", nil, prefix + "too many arguments in inline request"},
		{"*17\r\n" + strings.Repeat("$65536\r\n"+strings.Repeat("a", 65536)+"\r\n", 17), nil, prefix + "too big command"},
	} {
		r := newReader(t, strings.NewReader(c.stream))
		want := outcome{c.want, c.end}
		if got := drain(r, false); !got.equal(want) {
			t.Errorf("%.60q:\ngot  %v\nwant %v", c.stream, got, want)
		}
		_, again := r.Next()
		if again == nil || again.Error() != c.end {
			t.Errorf("%.60q: the next error is %v, not %s", c.stream, again, c.end)
		}
		if _, ok := errors.AsType[resp.ProtocolError](again); ok != strings.HasPrefix(c.end, prefix) {
			t.Errorf("%.60q: %v is of type %[2]T", c.stream, again)
		}
	}
}

// TestLimitsChangeBetweenCommands: a client may send more once it has authenticated.
func TestLimitsChangeBetweenCommands(t *testing.T) {
	long := strings.Repeat("x", 200)
	stream := string(resp.AppendCommand(nil, "AUTH", "secret")) + string(resp.AppendCommand(nil, "ECHO", long))
	strict := resp.Limits{Bulk: 100, Args: 3, Inline: 100, Command: 128}
	for _, wider := range []bool{true, false} {
		r := resp.NewReader(new(chunks(singles(stream))), strict)
		must.Get(r.Next())(t)
		if wider {
			r.SetLimits(resp.Limits{})
		}
		args, err := r.Next()
		if wider != (err == nil && len(args) == 2 && string(args[1]) == long) {
			t.Errorf("wider %t: %.20q, %v", wider, args, err)
		}
	}
	// Narrower, in the midst of a command and with a buffer that is larger.
	for _, stream := range []string{strings.Repeat("y", 500) + "\r\n", string(resp.AppendCommand(nil, "ECHO", long+long))} {
		src := &stumbling{chunks: chunks{stream[:300], stream[300:]}, failed: true}
		r := newReader(t, src)
		if _, err := r.Next(); !errors.Is(err, errPassing) {
			t.Fatal(err)
		}
		r.SetLimits(strict)
		_, err := r.Next()
		if _, ok := errors.AsType[resp.ProtocolError](err); !ok {
			t.Errorf("%.10q: %v", stream, err)
		}
	}
}

// TestReadyPredictsNextRead counts the reads.
func TestReadyPredictsNextRead(t *testing.T) {
	reads := 0
	src := chunks{"PING\r\nPING\r\nPI", "NG\r\n*1\r\n$4\r\nPI", "NG\r\n*1\r\n$4\r\nPINGx"}
	r := newReader(t, readFunc(func(p []byte) (int, error) { reads++; return src.Read(p) }))
	for i, want := range []struct {
		reads   int
		partial bool // behind the command
		ready   bool
	}{
		{1, false, true},
		{1, true, false},
		{2, true, false},
		{3, false, true}, // an error is ready too
	} {
		args, err := r.Next()
		if err != nil || len(args) != 1 || string(args[0]) != "PING" || reads != want.reads {
			t.Fatalf("command %d: %q, %v after %d reads", i, args, err, reads)
		}
		if ready := r.Ready(); ready != want.ready || r.Partial() != want.partial {
			t.Errorf("command %d: ready %t, partial %t", i, ready, r.Partial())
		}
	}
	if _, err := r.Next(); err == nil || reads != 3 {
		t.Errorf("%v after %d reads", err, reads)
	}
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestPartialWithinRead: a source may ask whether it waits for the rest of a
// command, to set its deadline.
func TestPartialWithinRead(t *testing.T) {
	var r *resp.Reader
	var asked []bool
	src := chunks{"PING\r\n", "PI", "NG\r\n\r\n"}
	r = newReader(t, readFunc(func(p []byte) (int, error) {
		asked = append(asked, r.Partial())
		return src.Read(p)
	}))
	if o := drain(r, false); len(o.commands) != 2 || o.end != "EOF" {
		t.Error(o)
	}
	if want := []bool{false, false, true, false}; !slices.Equal(asked, want) {
		t.Errorf("partial: got %t, want %t", asked, want)
	}
}

// TestArgumentsHaveNoSpareCapacity: a server that appends to an argument does not
// write over the next.
func TestArgumentsHaveNoSpareCapacity(t *testing.T) {
	for _, stream := range []string{"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\nPING\r\n", "a b 'c'\r\nPING\r\n"} {
		r := newReader(t, strings.NewReader(stream))
		args, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, arg := range args {
			_ = append(arg, "XXXXXXXXXXXX"...)
		}
		if string(bytes.Join(args, nil)) != "abc" {
			t.Errorf("%q: now %q", stream, args)
		}
		if args, err = r.Next(); err != nil || string(args[0]) != "PING" {
			t.Errorf("%q: then %q, %v", stream, args, err)
		}
	}
}

// TestMemoryIsBoundedByInput: a command that never ends holds no more
// than the limit, and an announcement holds nothing.
func TestMemoryIsBoundedByInput(t *testing.T) {
	for _, c := range []struct {
		name, text string
		most       int
	}{
		{"announcements", "*1024\r\n$65536\r\nx", 4096},
		{"half of a large argument", "*1\r\n$65536\r\n" + strings.Repeat("x", 32_000), 64 << 10},
		{"a line", strings.Repeat("x", 65_000), 64<<10 + 2},
		{"many arguments", "*1024\r\n" + strings.Repeat("$1024\r\n"+strings.Repeat("x", 1024)+"\r\n", 1000), 1 << 20},
	} {
		r := newReader(t, strings.NewReader(c.text))
		_, err := r.Next()
		if !errors.Is(err, io.ErrUnexpectedEOF) || r.BufferSize() > c.most {
			t.Errorf("%s: %v with a buffer of %d bytes, want at most %d", c.name, err, r.BufferSize(), c.most)
		}
	}
}

// TestBuffersShrinkAgain: after a large command the buffer is small before the
// next read, and after a pipeline soon.
func TestBuffersShrinkAgain(t *testing.T) {
	ping := "*1\r\n$4\r\nPING\r\n"
	src := chunks{string(resp.AppendCommand(nil, append(slices.Repeat([]string{strings.Repeat("x", 12_000)}, 50), "y")...)), ping, ping}
	r := newReader(t, &src)
	if args, err := r.Next(); err != nil || len(args) != 51 || r.BufferSize() < 600_000 {
		t.Fatalf("%d arguments, %v, %d bytes", len(args), err, r.BufferSize())
	}
	for range 2 {
		must.Get(r.Next())(t)
		if r.BufferSize() != 4096 || r.Strays() != 0 {
			t.Errorf("a buffer of %d bytes and %d views of former ones are kept of a command of 600 kB", r.BufferSize(), r.Strays())
		}
	}
	src = append(slices.Repeat(chunks{strings.Repeat(ping, 2000)}, 3), slices.Repeat(chunks{ping}, 20)...)
	largest := 0
	for drained := 0; drained < 6020; drained++ {
		must.Get(r.Next())(t)
		largest = max(largest, r.BufferSize())
	}
	if largest != 16<<10 || r.BufferSize() != 4096 {
		t.Errorf("a pipeline was read in %d bytes, %d are kept; want 16 KiB and 4 KiB", largest, r.BufferSize())
	}
}

// TestErrorWithBytes has a source that returns bytes and an error together.
func TestErrorWithBytes(t *testing.T) {
	src := readFunc(func(p []byte) (int, error) { return copy(p, "PI"), net.ErrClosed })
	if _, err := newReader(t, src).Next(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	check := func(name string, f func()) {
		t.Helper()
		for range 100 { // buffers find their size
			f()
		}
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	for _, text := range [][]byte{
		take(), bytes.Repeat(take(), 100), []byte("TAKE rule \"user:\\x41\" 'b'\r\n"), bytes.Repeat([]byte("\r\n*0\r\nPING a b\r\n"), 300),
		resp.AppendCommand(nil, slices.Repeat([]string{"x"}, 64)...), resp.AppendCommand(nil, "ECHO", strings.Repeat("x", 9000)),
	} {
		r := newReader(t, &repeating{text: text})
		w := resp.NewWriter(io.Discard)
		check(fmt.Sprintf("%.20q", text), func() {
			must.Get(r.Next())(t)
			decision(w)
			if !r.Ready() || w.Full() {
				must.Do(t, w.Flush())
			}
		})
	}
	for _, version := range []int{2, 3} {
		w := resp.NewWriter(io.Discard)
		w.SetVersion(version)
		for _, reply := range replies {
			check(reply.name, func() {
				reply.call(w)
				must.Do(t, w.Flush())
			})
		}
	}
	dst, args := make([]byte, 0, 1024), [][]byte{[]byte("SET"), []byte("key"), []byte("value")}
	check("a command of the client", func() {
		dst = resp.AppendCommand(dst[:0], "TAKE", "rule", "user:123456")
		dst = resp.AppendCommand(dst, args...)
	})
}
