package resp_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/internal/test/resptest"
)

// A redisConn is a connection to a Redis server.
type redisConn struct {
	net.Conn
	*resptest.Reader
}

func dialRedis(t *testing.T, socket string) redisConn {
	conn := must.Get(net.Dial("unix", socket))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return redisConn{conn, resptest.NewReader(conn)}
}

// do sends bytes and returns the next reply as show writes it.
func (c redisConn) do(t *testing.T, sent []byte) string {
	t.Helper()
	must.Get(c.Write(sent))(t)
	v, err := c.Next()
	if err != nil {
		t.Fatalf("%q: %v", sent, err)
	}
	return show(v)
}

// TestRedisReadsCommands sends random arguments, which come back.
func TestRedisReadsCommands(t *testing.T) {
	conn := dialRedis(t, redistest.Own(t).Socket())
	rng, seed := seeded(t)
	for range 500 {
		args := [][]byte{[]byte("EVAL"), []byte("return ARGV"), []byte("0")}
		for range rng.IntN(10) {
			args = append(args, randomBytes(rng, rng.IntN(1<<rng.IntN(12))))
		}
		if got, want := conn.do(t, resp.AppendCommand(nil, args...)), showArgs(args[3:]); got != want {
			t.Fatalf("seed %d: %q: got %s, want %s", seed, args, got, want)
		}
	}
}

func showArgs(args [][]byte) string {
	v := resptest.Value{Kind: '*'}
	for _, arg := range args {
		v.Elems = append(v.Elems, resptest.Value{Kind: '$', Text: string(arg)})
	}
	return show(v)
}

// show returns a value as text.
func show(v resptest.Value) string {
	switch v.Kind {
	case '_':
		return "null"
	case '-':
		return fmt.Sprintf("error %q", v.Text)
	case '$', '=', '*', '%', '~', '>':
	default:
		return string(v.Kind) + v.Text
	}
	if v.Elems == nil && v.Kind != '*' {
		return fmt.Sprintf("%c%q", v.Kind, v.Text)
	}
	elems := make([]string, len(v.Elems))
	for i := range elems {
		elems[i] = show(v.Elems[i])
	}
	return string(v.Kind) + "(" + strings.Join(elems, ", ") + ")"
}

// TestSplitsLinesAsRedisDoes sends random inline commands to Redis and to a
// Reader. (The model that other tests compare with was written by whoever wrote
// the Reader; Redis was not.)
func TestSplitsLinesAsRedisDoes(t *testing.T) {
	socket := redistest.Own(t).Socket()
	conn := dialRedis(t, socket)
	rng, seed := seeded(t)
	refused := 0
	const rounds = 3000
	for range rounds {
		line := `EVAL "return ARGV" 0 ` + string(randomLine(rng, rng.IntN(20))) + "\n"
		got := conn.do(t, []byte(line))
		args, err := newReader(t, strings.NewReader(line)).Next()
		if err != nil {
			refused++
			if want := fmt.Sprintf("error %q", "ERR "+err.Error()); got != want {
				t.Fatalf("seed %d: %q: Redis answers %s, want %s", seed, line, got, want)
			}
			conn = dialRedis(t, socket)
			continue
		}
		if want := showArgs(args[3:]); got != want {
			t.Fatalf("seed %d: %q: Redis reads %s, want %s", seed, line, got, want)
		}
	}
	if refused == 0 || refused == rounds {
		t.Errorf("seed %d: %d of %d lines were refused", seed, refused, rounds)
	}
}

// TestRefusesInRedisWords: what both refuse is refused with the same words.
func TestRefusesInRedisWords(t *testing.T) {
	socket := redistest.Own(t).Socket()
	for _, stream := range []string{
		"*abc\r\n", "*+1\r\n", "*01\r\n", "*2147483648\r\n", "*99999999999999999999999\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$abc\r\n", "*1\r\n$-0\r\n", "*1\r\n$01\r\n", "*1\r\n$9223372036854775807\r\n",
		"*1\r\n*1\r\n", "*1\r\n:1\r\n", "*1\r\n+OK\r\n",
		"GET \"a\r\n", "GET 'a'b\r\n",
	} {
		_, err := newReader(t, strings.NewReader(stream)).Next()
		if err == nil {
			t.Errorf("%q is read", stream)
			continue
		}
		if got, want := dialRedis(t, socket).do(t, []byte(stream)), fmt.Sprintf("error %q", "ERR "+err.Error()); got != want {
			t.Errorf("%q: Redis answers %s, want %s", stream, got, want)
		}
	}
}

// TestConcurrentRedisCLIReadsReplies has redis-cli print replies of a Writer.
func TestConcurrentRedisCLIReadsReplies(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("SKIP: there is no redis-cli to read our replies")
	}
	socket := serveReplies(t)
	for _, c := range []struct{ name, two, three string }{
		{"ok", "OK", "OK"},
		{"error", "(error) NORULE no rule x", "(error) NORULE no rule x"},
		{"minus", "(integer) -1", "(integer) -1"},
		{"bulk", `"a\r\n\x00"`, `"a\r\n\x00"`},
		{"null", "(nil)", "(nil)"},
		{"null array", "(nil)", "(nil)"},
		{"array", "1) (integer) 1\n2) (integer) 2", "1) (integer) 1\n2) (integer) 2"},
		{"map", "1) \"k\"\n2) (integer) 1", `1# "k" => (integer) 1`},
		{"set", "1) (integer) 1", "1~ (integer) 1"},
		{"double", `"3.25"`, "(double) 3.25"},
		{"verbatim", `"# a"`, "# a"},
		{
			"decision", "1) (integer) 1\n2) (integer) 60\n3) (integer) 59\n4) (integer) 0\n5) (integer) 60000\n6) \"per-client\"\n7) (integer) 0",
			"1) (integer) 1\n2) (integer) 60\n3) (integer) 59\n4) (integer) 0\n5) (integer) 60000\n6) \"per-client\"\n7) (integer) 0",
		},
	} {
		for _, version := range []string{"-2", "-3"} {
			want := c.two
			if version == "-3" {
				want = c.three
			}
			out, err := exec.Command(cli, "-s", socket, version, "--no-raw", "REPLY", c.name).CombinedOutput()
			if got := strings.TrimSpace(string(out)); got != want {
				t.Errorf("%s in version %s: got %s, %v, want %s", c.name, version, got, err, want)
			}
		}
	}
}

// serveReplies starts a server on a socket that answers REPLY name with a reply
// of the table, and HELLO.
func serveReplies(t *testing.T) (socket string) {
	dir := must.Get(os.MkdirTemp("", "resp"))(t) // whose name is short enough for a socket in it
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "ours")
	l := must.Get(net.Listen("unix", socket))(t)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { serveConn(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		served.Wait()
	})
	return socket
}

func serveConn(conn net.Conn) {
	defer conn.Close()
	r := resp.NewReader(conn, resp.Limits{})
	for w := resp.NewWriter(conn); ; {
		args, err := r.Next()
		if err != nil {
			return
		}
		answerReply(w, args)
		if !r.Ready() {
			if err := w.Flush(); err != nil {
				return
			}
		}
	}
}

func answerReply(w *resp.Writer, args [][]byte) {
	if len(args) != 2 {
		w.Error("BADARG", "two words are known here")
		return
	}
	switch string(bytes.ToUpper(args[0])) {
	case "HELLO":
		version, _ := strconv.Atoi(string(args[1]))
		w.SetVersion(version)
		w.Map(1)
		w.BulkString("proto")
		w.Int(int64(w.Version()))
	case "REPLY":
		for _, reply := range replies {
			if reply.name == string(args[1]) {
				reply.call(w)
			}
		}
	default:
		w.Error("ERR", "unknown command")
	}
}
