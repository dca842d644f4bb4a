package respapi

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
	"github.com/lately-go/lately/ratelimit"
)

// pipeline is commands whose answers do not depend on when they come.
func pipeline() (ask []byte, n int) {
	lines := []string{
		"PING", "TAKE pair a^b", "TAKE pair a^b", "TAKE pair a^b", "CHECK user u cost 2", "nosuch", "HELLO 3", "TAKE login u",
		"RATE requests a", "UNSUBSCRIBE", "SUBSCRIBE bans", "BAN login w 10m", "ECHO end",
	}
	for _, l := range lines {
		ask = append(ask, encode(l)...)
	}
	return append(ask, "PING inline\r\n\r\nECHO 'a b'\r\n"...), len(lines) + 2
}

// TestSplitAtEveryByte sends a pipeline in two pieces, cut at every byte, and in
// pieces of one byte.
func TestSplitAtEveryByte(t *testing.T) {
	ask, _ := pipeline()
	answers := func(t *testing.T, cuts ...int) []byte {
		var all []byte
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Config{}, true)
			conn := s.pipe.dial()
			got := make(chan []byte)
			go func() {
				b, _ := io.ReadAll(conn)
				got <- b
			}()
			from := 0
			for _, cut := range append(cuts, len(ask)) {
				if _, err := conn.Write(ask[from:cut]); err != nil {
					t.Errorf("write: %v", err)
				}
				synctest.Wait()
				from = cut
			}
			conn.Close()
			all = <-got
			s.stop()
		})
		return all
	}
	want := answers(t)
	for _, part := range []string{"$6\r\ninline\r\n", "$3\r\na b\r\n", ">3\r\n$7\r\nmessage\r\n"} { // the push stands anywhere between replies
		if !bytes.Contains(want, []byte(part)) {
			t.Fatalf("the pipeline answers %q, without %q", want, part)
		}
	}
	step := 3
	if long() {
		step = 1
	}
	for cut := 1; cut < len(ask); cut += step {
		if got := answers(t, cut); !bytes.Equal(sorted(got), sorted(want)) {
			t.Fatalf("cut at %d: %q\nwant %q", cut, got, want)
		}
	}
	var every []int
	for cut := 1; cut < len(ask); cut++ {
		every = append(every, cut)
	}
	if got := answers(t, every...); !bytes.Equal(sorted(got), sorted(want)) {
		t.Errorf("byte by byte: %q\nwant %q", got, want)
	}
}

// sorted takes out the push, which may come a reply earlier or later.
func sorted(b []byte) []byte {
	r := resptest.NewReader(bytes.NewReader(b))
	var replies, pushes []string
	for {
		v, err := r.Next()
		if err != nil {
			return []byte(strings.Join(append(replies, pushes...), "\n"))
		}
		if text := show(v); v.Kind == '>' && strings.HasPrefix(text, `>["message"`) {
			pushes = append(pushes, text[:30])
		} else {
			replies = append(replies, text)
		}
	}
}

func TestPipelineOverTCP(t *testing.T) {
	c := start(t, Config{}, false).dial()
	const n = 20_000
	go func() {
		var b []byte
		for range n {
			b = append(b, "*3\r\n$4\r\nTAKE\r\n$10\r\nper-client\r\n$1\r\na\r\n"...)
		}
		c.conn.Write(b)
	}()
	for i := range n {
		v, err := c.r.Next()
		if err != nil || len(v.Elems) != 7 || v.Elems[2].Int() != int64(1_000_000_000-1-i) {
			t.Fatalf("reply %d: %s, %v", i, show(v), err)
		}
	}
}

func TestProtocolErrors(t *testing.T) {
	s := start(t, Config{}, false)
	for in, want := range map[string]string{
		"*1\r\n+PING\r\n":                    "-ERR Protocol error: expected '$', got '+'",
		"*9999999999\r\n":                    "-ERR Protocol error: invalid multibulk length",
		"*1\r\n$99999999\r\n":                "-ERR Protocol error: invalid bulk length",
		"POST /v1/take HTTP/1.1\r\n":         "-ERR Protocol error: this is not an HTTP port",
		strings.Repeat("x", 70_000) + "\r\n": "-ERR Protocol error: too big inline request",
	} {
		c := s.dial()
		go c.conn.Write([]byte(in + strings.Repeat("garbage ", 4096)))
		if got := c.next(); got != want {
			t.Errorf("%.30q answers %s; want %s", in, got, want)
		}
		c.wantEnd()
	}
	if n := s.Errors.Load(); n != 5 {
		t.Errorf("%d errors are counted, want 5", n)
	}
}

func TestTooManyConnections(t *testing.T) {
	s := start(t, Config{Limits: access.Limits{MaxConnections: 4, PeerConnections: 2}}, false)
	a, b := s.dial(), s.dial()
	a.want("PING", "+PONG")
	b.want("PING", "+PONG")
	c := s.dial()
	if got := c.next(); got != "-OVERLOAD there are too many connections" {
		t.Errorf("the third receives %s", got)
	}
	c.wantEnd()
	a.want("QUIT", "+OK")
	a.wantEnd()
	for s.Open() > 1 { // it is counted until its goroutine has ended
		time.Sleep(time.Millisecond)
	}
	s.dial().want("PING", "+PONG")
	if _, accepted, refused := s.Conns.Counts(); accepted != 3 || refused != 1 || s.Requests.Load() != 4 {
		t.Errorf("%d accepted, %d refused, %d requests", accepted, refused, s.Requests.Load())
	}
}

// TestPanicEndsOneConnection has a command that panics.
func TestPanicEndsOneConnection(t *testing.T) {
	s := New(Config{Engine: newEngine(t)})
	boom := command{name: "boom", least: 1, whileSubscribed: true, handle: func(*conn, [][]byte) error { panic("boom") }}
	s.commands = newCommandTable(append(commands, boom))
	r := serveOn(t, s)
	other, c, fed := r.dial(), r.dial(), r.dial()
	fed.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
	fed.send("BOOM")
	fed.wantEnd()
	c.send("BOOM")
	c.wantEnd()
	other.want("PING", "+PONG")
	if n := s.Panics.Load(); n != 2 {
		t.Errorf("%d panics were counted; want 2", n)
	}
}

func serveOn(t *testing.T, s *Server) *running {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &running{Server: s, t: t, addr: l.Addr().String()}
	r.stop = serving(t, s, l)
	t.Cleanup(r.stop)
	return r
}

func TestTLS(t *testing.T) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	leaf := must.Get(x509.ParseCertificate(der))(t)
	s := start(t, Config{TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}, false)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	conn := must.Get(tls.Dial("tcp", s.addr, &tls.Config{RootCAs: pool, ServerName: "localhost"}))(t)
	defer conn.Close()
	c := &caller{t, conn, resptest.NewReader(conn)}
	c.want("TAKE login a", "[1 3 2 …")
	c.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
	s.stop() // and a drain is a clean end
	if _, err := c.r.Next(); err != io.EOF {
		t.Errorf("the end is %v; want EOF", err)
	}
}

// Times are rounded up, so that a client that waits this long waits long enough.
func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, ratelimit.Never: -1} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %d s; want %d", d, got, want)
		}
	}
}
