package resp_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
)

// A purse is a Budget that keeps book of the most that was taken.
type purse struct{ limit, used, most int }

func (p *purse) Take(n int) bool {
	if p.used+n > p.limit {
		return false
	}
	p.used += n
	p.most = max(p.most, p.used)
	return true
}

func (p *purse) Give(n int) { p.used -= n }

func (p *purse) Scarce() bool { return p.used > p.limit/2 }

// newBudgetReader returns a Reader of src that takes memory from b.
func newBudgetReader(t *testing.T, src io.Reader, b resp.Budget) *resp.Reader {
	t.Helper()
	r := resp.NewReader(src, resp.Limits{})
	r.SetBudget(b)
	return r
}

// command returns a command of n arguments of that many bytes.
func command(n, size int) string {
	arg := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size))
	return fmt.Sprintf("*%d\r\n%s", n, strings.Repeat(arg, n))
}

// TestReaderBudget sends commands with enough memory or not, whole and half.
func TestReaderBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream string
		limit  int
		want   error
	}{
		{"small", command(4, 100), 0, io.EOF},
		{"many small", strings.Repeat(command(4, 100), 1000), 0, io.EOF},
		{"large", command(10, 60_000), 1 << 20, io.EOF},
		{"large, no memory", command(10, 60_000), 1 << 19, resp.ErrBudget},
		{"half", command(10, 60_000)[:300_000], 1 << 19, io.ErrUnexpectedEOF},
		{"half, no memory", command(10, 60_000)[:300_000], 1 << 18, resp.ErrBudget},
		{"many arguments", command(1024, 0), 40 << 10, io.EOF},
		{"many arguments, no memory", command(1024, 0), 20 << 10, resp.ErrBudget},
		{"half of many arguments, no memory", command(1024, 0)[:5000], 20 << 10, resp.ErrBudget},
	} {
		b := &purse{limit: c.limit}
		r := newBudgetReader(t, &chunks{c.stream}, b)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
		if _, again := r.Next(); c.want == resp.ErrBudget && again != resp.ErrBudget {
			t.Errorf("%s: then %v", c.name, again)
		}
		if r.Release(); b.used != 0 {
			t.Errorf("%s: %d bytes are still taken", c.name, b.used)
		}
	}
}

// TestReaderGivesBack has a connection that sent a large command and is silent now.
func TestReaderGivesBack(t *testing.T) {
	b := &purse{limit: 4 << 20}
	src := &waiting{rest: command(1000, 900) + command(1, 4), used: func() int { return b.used }}
	r := newBudgetReader(t, src, b)
	for range 2 {
		must.Get(r.Next())(t)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if b.most < 900_000 || src.atEnd > 16<<10 {
		t.Errorf("%d bytes were taken at most, and %d while it waits", b.most, src.atEnd)
	}
}

// A waiting notes how much is taken when it has nothing more.
type waiting struct {
	rest  string
	used  func() int
	atEnd int
}

func (w *waiting) Read(p []byte) (int, error) {
	if w.rest == "" {
		w.atEnd = w.used()
		return 0, io.EOF
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// TestScarceBudgetIsForNeeds has a peer that pipelines: its buffer grows only while there is plenty.
func TestScarceBudgetIsForNeeds(t *testing.T) {
	stream := strings.Repeat(command(2, 10), 10_000)
	for _, c := range []struct{ limit, least, most int }{{1 << 20, 1, 16 << 10}, {0, 0, 0}} {
		b := &purse{limit: c.limit}
		if c.limit == 0 {
			b = &purse{limit: 100, used: 100, most: 100} // taken by others
		}
		others := b.used
		r := newBudgetReader(t, &chunks{stream}, b)
		n := 0
		var err error
		for ; err == nil; n++ {
			_, err = r.Next()
		}
		if err != io.EOF || n != 10_001 {
			t.Errorf("limit %d: %d commands, %v", c.limit, n, err)
		}
		if got := b.most - others; got < c.least || got > c.most {
			t.Errorf("limit %d: %d bytes were taken", c.limit, got)
		}
	}
}

func TestWriterBudget(t *testing.T) {
	b := &purse{limit: 100_000}
	var out strings.Builder
	w := resp.NewWriter(&out)
	w.SetBudget(b)
	w.BulkString(strings.Repeat("x", 60_000))
	if err := w.Flush(); err != nil || out.Len() < 60_000 || b.used != 0 {
		t.Errorf("60,000 bytes: %v, %d written, %d still taken", err, out.Len(), b.used)
	}
	if w.Reserve(200_000) || !w.Reserve(90_000) || b.used == 0 {
		t.Errorf("90,000 bytes can be reserved and 200,000 cannot; %d are taken", b.used)
	}
	w.OK()
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	for range 3 { // more than is available
		w.BulkString(strings.Repeat("x", 60_000))
	}
	w.OK()
	if err := w.Flush(); err != resp.ErrBudget {
		t.Errorf("more than there is: %v", err)
	}
	if w.Release(); b.used != 0 {
		t.Errorf("%d bytes are still taken", b.used)
	}

	b = &purse{limit: 10_000}
	w = resp.NewWriter(&out)
	w.SetBudget(b)
	for w.BulkString("x"); len(w.Bytes()) < 5000; w.BulkString("x") {
	}
	if w.Full() {
		t.Error("5,000 bytes are too many already")
	}
	b.used += 5000 // by others
	if !w.Full() {
		t.Error("5,000 bytes are not to be flushed though memory is scarce")
	}
}
