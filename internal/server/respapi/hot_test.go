package respapi

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// A tape is a connection that brings the same bytes again and again, and takes all.
type tape struct {
	net.Conn
	bytes []byte
	at    int
	out   int
}

func (c *tape) Read(b []byte) (int, error) {
	n := copy(b, c.bytes[c.at:])
	c.at = (c.at + n) % len(c.bytes)
	return n, nil
}

func (c *tape) Write(b []byte) (int, error) { c.out += len(b); return len(b), nil }

func (c *tape) Close() error { return nil }

func (c *tape) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (c *tape) SetReadDeadline(time.Time) error { return nil }

// onTape returns a connection that reads those lines forever.
func onTape(t testing.TB, lines ...string) (*conn, *tape) {
	t.Helper()
	s := New(Config{Engine: newEngine(t)})
	in := &tape{}
	for _, l := range lines {
		in.bytes = append(in.bytes, encode(l)...)
	}
	c := newConn(s, in, access.AddrOf(in.RemoteAddr()))
	c.mu.Lock() // as serve
	return c, in
}

// step answers n commands as serve does.
func (c *conn) step(t testing.TB, n int) {
	for range n {
		args := must.Get(c.r.Next())(t)
		c.do(args)
		if !c.r.Ready() || c.w.Full() {
			c.decide()
			must.Do(t, c.w.Flush())
		}
	}
}

func TestHotCommandsDoNotAllocate(t *testing.T) {
	for _, line := range []string{
		"TAKE login ada", "TAKE per-client 192.0.2.1 COST 2", "TAKE pair 192.0.2.1^ada", "REFUND login ada", "RELEASE uploads ada", "TAKE queue ada", "CHECK client 192.0.2.1 user ada path /x",
		"CHECK client 192.0.2.1 x-tenant t1 COST 2", "CHECK path /x?y=1", "PEEK login ada", "PEEK pair 192.0.2.1^ada COST 2", "PEEK login new",
		"ADD pages /a", "ADD pages /a 5", "SUM pages /a", "SUM requests 192.0.2.1 SPAN 1m", "SUM pages /a SPAN 1d",
		"RATE pages /a", "RATE pages /a SPAN 1h", "CL.THROTTLE a 15 30 60", "PING",
		"HOT.REPORT product /product/x/../y 1 40 /product/2 7 0", "HOT.REPORT product /product/1 1 90000",
	} {
		c, _ := onTape(t, line)
		must.Do(t, c.session.Add("pages", 1, "/a"))
		c.step(t, 1000)
		if n := testing.AllocsPerRun(1000, func() { c.step(t, 1) }); n != 0 {
			t.Errorf("%s allocates %v times", line, n)
		}
	}
	// The control: an error is a value of its own each time.
	c, _ := onTape(t, "TAKE nosuch ada")
	if n := testing.AllocsPerRun(100, func() { c.step(t, 1) }); n == 0 {
		t.Error("this test cannot see allocations")
	}
}

func BenchmarkCommand(b *testing.B) {
	for _, line := range []string{"PING", "TAKE per-client 192.0.2.1", "CHECK client 192.0.2.1", "PEEK login ada", "ADD pages /a", "SUM pages /a", "CL.THROTTLE a 15 30 60"} {
		for _, n := range []int{1, 16} { // in a pipeline
			b.Run(fmt.Sprint(line, " by ", n), func(b *testing.B) {
				c, _ := onTape(b, slices.Repeat([]string{line}, n)...)
				must.Do(b, c.session.Add("pages", 1, "/a"))
				c.step(b, 128)
				b.ReportAllocs()
				for b.Loop() {
					c.step(b, 1)
				}
			})
		}
	}
}

// FuzzServer has a whole connection answer any bytes.
func FuzzServer(f *testing.F) {
	ask, _ := pipeline()
	f.Add(ask)
	f.Add([]byte("*3\r\n$4\r\nTAKE\r\n$5\r\nlogin\r\n$1\r\na\r\n"))
	f.Add([]byte("PSUBSCRIBE [a-\r\nPSUBSCRIBE \\\r\nBAN login x 1h\r\nRESET\r\nHELLO 3\r\nINFO all\r\nCOMMAND DOCS\r\nBANS COUNT 1\r\nTOP requests 3\r\n"))
	for _, e := range enumeration {
		f.Add([]byte(e.line + "\r\n" + e.line + " x\r\n"))
	}
	e := newEngine(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		s := start(t, Config{Engine: e}, true)
		conn := s.pipe.dial()
		got := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(conn)
			got <- b
		}()
		conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		conn.Write(in)
		conn.Write([]byte("\r\n"))
		conn.Close()
		r := resptest.NewReader(bytes.NewReader(<-got))
		for {
			if _, err := r.Next(); err == io.EOF || err == io.ErrUnexpectedEOF {
				break
			} else if err != nil {
				t.Fatalf("the answer breaks the protocol: %v", err)
			}
		}
		s.stop()
		if n := s.Panics.Load(); n != 0 {
			t.Errorf("%d panics", n)
		}
	})
}
