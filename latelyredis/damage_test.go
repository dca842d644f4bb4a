package latelyredis_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"

	"github.com/lately-go/lately/internal/resp"
)

// A damager damages replies on their way from servers.
type damager struct {
	mu     sync.Mutex
	every  int // one reply in this many is damaged, on average; 0 for none
	rng    *rand.Rand
	done   int
	unseen int // that no check of frames can find: what is within a string, and which reply is for which command
}

func newDamager(seed uint64) *damager { return &damager{rng: rand.New(rand.NewPCG(seed, 0))} }

// damageOneIn makes d damage one reply in n from now on, or none.
func (d *damager) damageOneIn(every int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.every = every
}

// over returns conn with damaged replies.
func (d *damager) over(conn net.Conn) net.Conn {
	return &damagedConn{Conn: conn, damager: d, scanner: resp.NewScanner(resp.Limits{Bulk: 1 << 30, Args: 1 << 30, Command: 1 << 30})}
}

type damagedConn struct {
	net.Conn
	damager *damager
	scanner *resp.Scanner
	buf     [64 << 10]byte
	reply   []byte // that has come in part
	out     []byte
}

func (c *damagedConn) Read(b []byte) (int, error) {
	for len(c.out) == 0 {
		n, err := c.Conn.Read(c.buf[:])
		if err != nil {
			return 0, err
		}
		for in := c.buf[:n]; len(in) > 0; {
			n, whole, err := c.scanner.Scan(in)
			if err != nil { // not Redis: a port was damaged
				return 0, err
			}
			c.reply, in = append(c.reply, in[:n]...), in[n:]
			if whole {
				c.out = append(c.out, c.damager.pass(c.reply)...)
				c.reply = c.reply[:0]
			}
		}
	}
	n := copy(b, c.out)
	c.out = c.out[n:]
	return n, nil
}

// pass returns reply, or its rest.
func (d *damager) pass(reply []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.every == 0 || d.rng.IntN(d.every) > 0 {
		return reply
	}
	d.done++
	return d.damage(bytes.Clone(reply))
}

// heads are what a reply must not begin with.
var heads = []string{
	"$-5\r\n", "$9223372036854775807\r\n", "*2147483647\r\n", "$536870912\r\n", "%-1\r\n", ">-1\r\n", "*-2\r\n", "~-3\r\n", "$?\r\n", "*?\r\n",
	"|1\r\n", "$00\r\n", "$+1\r\n", "$ 1\r\n", "$1\n", ":1x\r\n", ":\r\n", "_1\r\n", "#x\r\n", ",1..2\r\n", "(12a\r\n", "%4611686018427387904\r\n",
	"%9223372036854775807\r\n", "*262145\r\n", "$33554433\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", ">1\r\n$10\r\npsubscribe\r\n",
	">3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n", "+QUEUED\r\n", "*0\r\n", "*-1\r\n", "\r\n", "\x00", "!5\r\nERR a\r\n", ";1\r\na\r\n", ".\r\n",
	"-MOVED\r\n", "-ASK 1\r\n", "-MOVED 1 127.0.0.1:1\r\n", "*1\r\n>2\r\n+a\r\n+b\r\n",
}

func (d *damager) damage(b []byte) []byte {
	switch d.rng.IntN(10) {
	case 0: // instead of how it begins
		d.unseen++ // it may be well-formed
		_, rest, _ := bytes.Cut(b, []byte("\n"))
		return append([]byte(heads[d.rng.IntN(len(heads))]), rest...)
	case 1: // before it
		return append([]byte(heads[d.rng.IntN(len(heads))]), b...)
	case 2: // another type
		b[0] = byte(d.rng.Uint32())
	case 3: // twice
		return append(b, b...)
	case 4: // cut
		return b[:d.rng.IntN(len(b))]
	case 5: // within it
		d.unseen++
		return append(b[:d.rng.IntN(len(b))], heads[d.rng.IntN(len(heads))]...)
	case 6: // too long
		return append(append([]byte("+"), strings.Repeat("a", 1<<d.rng.IntN(18))...), "\r\n"...)
	case 7: // too deep
		return []byte(strings.Repeat([]string{"*1\r\n", "%1\r\n+a\r\n", "~1\r\n"}[d.rng.IntN(3)], 1<<d.rng.IntN(18)))
	case 8: // the longest that is not too long
		return append([]byte("$33554432\r\n"), b...)
	default:
		d.unseen++
		for range 1 + d.rng.IntN(3) {
			b[d.rng.IntN(len(b))] ^= 1 << d.rng.IntN(8)
		}
	}
	return b
}

func (d *damager) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("%d replies damaged, of which %d may be well-formed", d.done, d.unseen)
}

// counts returns how many replies were damaged, and how many of these may be well-formed.
func (d *damager) counts() (done, unseen int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done, d.unseen
}
