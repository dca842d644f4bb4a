package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// hotRules are the rules of the server whose hot keys are measured.
const hotRules = `version: 1
hot:
  - {name: cold, key: path, threshold: 500 per 2s, hold: 60s}
  - {name: brief, key: path, threshold: 500 per 100ms, hold: 1s}
`

// inReport is how many records a HOT.REPORT has.
const inReport = 100

// measureHot prints how fast hot keys are reported and passed on: records a second, keys
// that are passed to watchers a second, and the time from a report that makes a key hot
// until the last watcher has read it, while others report.
func measureHot(l load, watchers, passes int) error {
	lately, err := startSelf("lately", "-serve-hot")
	if err != nil {
		return err
	}
	defer lately.stop()
	for range passes {
		for _, f := range []func(load, *subject, int) error{ingest, deliveries, latency} {
			if err := f(l, lately, watchers); err != nil {
				return err
			}
		}
	}
	fmt.Printf("memory of the server: %s. The clients ran on the same machine.\n", lately.memory())
	return nil
}

// reports returns bursts of ten reports of a hundred records each.
func reports(addr string) wire {
	return wire{addr: addr, at: 10 * inReport, begins: ":", lines: 10, burst: func(keys []string) (b []byte) {
		for part := range slices.Chunk(keys, inReport) {
			args := []string{"HOT.REPORT", "cold"}
			for i, k := range part {
				args = append(args, k, strconv.Itoa(1+i%3), strconv.Itoa(i%50))
			}
			b = resp.AppendCommand(b, args...)
		}
		return b
	}}
}

// ingest measures records a second.
func ingest(l load, lately *subject, _ int) error {
	r := row{subject: lately, ask: reports(lately.addr).ask}
	if err := r.sample(l); err != nil {
		return err
	}
	s := r.samples[0]
	fmt.Printf("records: %.0f a second, %.2f µs of the server's CPU each, %d connections, %d keys\n", s.rate, s.cpu, l.conns, l.keys)
	return nil
}

// A crowd is watchers of one rule, each a connection with a goroutine.
type crowd struct {
	conns []net.Conn
	done  sync.WaitGroup
}

// gather connects so many watchers. Each passes what it is sent to read, after the state
// that it begins with.
func gather(addr, rule string, n int, read func(message []byte)) (*crowd, error) {
	c := &crowd{}
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			c.leave()
			return nil, err
		}
		c.conns = append(c.conns, conn)
		conn.Write(resp.AppendCommand(resp.AppendCommand(nil, "HELLO", "3"), "HOT.WATCH", rule))
		begun := make(chan error, 1)
		c.done.Go(func() { watch(conn, begun, read) })
		if err := <-begun; err != nil {
			c.leave()
			return nil, err
		}
	}
	return c, nil
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		conn.Close()
	}
	c.done.Wait()
}

// watch reads the messages of a connection until it ends. It sends to begun when it has
// the first one.
func watch(conn net.Conn, begun chan<- error, read func(message []byte)) {
	in := bufio.NewReaderSize(conn, 8<<10)
	var message []byte
	for first := true; ; {
		line, err := in.ReadSlice('\n')
		if err != nil {
			if first {
				begun <- err
			}
			return
		}
		if !bytes.Equal(line, []byte(">2\r\n")) {
			continue // of the answer to HELLO, and OK
		}
		if _, err = in.Discard(len("$3\r\nhot\r\n$")); err == nil {
			line, err = in.ReadSlice('\n')
		}
		if err == nil {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(line)))
			message = slices.Grow(message[:0], n+2)[:n+2]
			_, err = io.ReadFull(in, message)
		}
		if err != nil {
			return
		}
		if first {
			first = false
			begun <- nil
			continue
		}
		read(message)
	}
}

// command sends a command and reads its answer, an integer.
func command(conn net.Conn, args ...string) error {
	if _, err := conn.Write(resp.AppendCommand(nil, args...)); err != nil {
		return err
	}
	answer := make([]byte, 256)
	n, err := conn.Read(answer)
	if err == nil && answer[0] != ':' {
		err = fmt.Errorf("the answer is %.80q", answer[:n])
	}
	return err
}

// deliveries measures how many changes of hot keys watchers are sent a second, while as
// many keys become hot as the server takes.
func deliveries(l load, lately *subject, watchers int) error {
	var entries, messages atomic.Int64
	c, err := gather(lately.addr, "brief", watchers, func(m []byte) {
		entries.Add(int64(bytes.Count(m, []byte(`{"rule":`))))
		messages.Add(1)
	})
	if err != nil {
		return err
	}
	defer c.leave()
	conn, err := net.Dial("tcp", lately.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	busy, began, keys := lately.cpu(), time.Now(), 0
	for time.Since(began) < l.d {
		args := []string{"HOT.REPORT", "brief"}
		for range 20 {
			args = append(args, fmt.Sprint("/hot/", keys%3000), "500", "0") // each is cold when it comes again
			keys++
		}
		if err := command(conn, args...); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(began)
	n, m := entries.Load(), messages.Load()
	fmt.Printf("deliveries: %.0f changes a second in %.0f messages, to %d watchers, while %.0f keys a second became hot; %.2f µs of the server's CPU for each change\n",
		float64(n)/took.Seconds(), float64(m)/took.Seconds(), watchers, float64(keys)/took.Seconds(), float64((lately.cpu()-busy).Microseconds())/float64(n))
	return nil
}

// A mark is a key that becomes hot, and how many watchers have not read it yet.
type mark struct {
	sent time.Time
	left atomic.Int64
	last chan time.Duration
}

// latency measures the time from the sending of a report that makes a key hot until the
// last watcher has read it, while 200,000 records a second are reported.
func latency(l load, lately *subject, watchers int) error {
	var at atomic.Pointer[mark]
	c, err := gather(lately.addr, "cold", watchers, func(m []byte) {
		if now := at.Load(); now != nil && bytes.Contains(m, []byte(`"/mark`)) && now.left.Add(-1) == 0 {
			now.last <- time.Since(now.sent)
		}
	})
	if err != nil {
		return err
	}
	defer c.leave()
	stop := make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(stop)
	var reported atomic.Int64
	for i := range 4 {
		conn, err := net.Dial("tcp", lately.addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		bursts := reports(lately.addr).bursts(i, l)
		others.Go(func() { pace(conn, bursts, 50_000, stop, &reported) })
	}
	conn, err := net.Dial("tcp", lately.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	began := time.Now()
	var times []time.Duration
	for time.Since(began) < 5*l.d || len(times) < 20 {
		time.Sleep(time.Duration(20+rand.IntN(60)) * time.Millisecond)
		now := &mark{last: make(chan time.Duration, 1)}
		now.left.Store(int64(watchers))
		now.sent = time.Now()
		at.Store(now)
		if err := command(conn, "HOT.REPORT", "cold", fmt.Sprintf("/mark/%d", rand.Uint64()), "500", "0"); err != nil {
			return err
		}
		select {
		case d := <-now.last:
			times = append(times, d)
		case <-time.After(10 * time.Second):
			return fmt.Errorf("%d of %d watchers did not read a key that became hot", now.left.Load(), watchers)
		}
	}
	took := time.Since(began)
	slices.Sort(times)
	fmt.Printf("latency to the last of %d watchers: p50 %v, p99 %v, of %d keys, while %.0f records a second were reported\n",
		watchers, times[len(times)/2].Round(10*time.Microsecond), times[len(times)*99/100].Round(10*time.Microsecond), len(times), float64(reported.Load())/took.Seconds())
	return nil
}

// pace reports so many records a second until stop is closed.
func pace(conn net.Conn, bursts [][]byte, each int, stop <-chan struct{}, reported *atomic.Int64) {
	answer, began := make([]byte, 4096), time.Now()
	for sent := 0; ; sent++ {
		due := began.Add(time.Duration(sent) * 10 * inReport * time.Second / time.Duration(each))
		select {
		case <-stop:
			return
		case <-time.After(time.Until(due)):
		}
		if _, err := conn.Write(bursts[sent%len(bursts)]); err != nil {
			return
		}
		for lines := 0; lines < 10; {
			n, err := conn.Read(answer)
			if err != nil {
				return
			}
			lines += bytes.Count(answer[:n], []byte{'\n'})
		}
		reported.Add(10 * inReport)
	}
}
