package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// A wire asks over plain connections, one for each caller, and looks no closer at
// answers than it has to.
type wire struct {
	addr   string
	burst  func(keys []string) []byte // what is sent at once
	at     int                        // how many keys are in it
	begins string                     // an answer that is no error
	lines  int                        // of all answers to a burst
}

// pipelined returns bursts of commands of RESP.
func pipelined(addr string, at int, begins string, lines int, command func(key string) []byte) wire {
	return wire{addr: addr, at: at, begins: begins, lines: lines * at, burst: func(keys []string) (b []byte) {
		for _, k := range keys {
			b = append(b, command(k)...)
		}
		return b
	}}
}

// posted returns requests over HTTP: of one item for a key, which has %s for it, or of a
// list of them.
func posted(addr, path string, at, lines int, item, list string) wire {
	return wire{addr: addr, at: at, begins: "HTTP/1.1 200", lines: lines, burst: func(keys []string) []byte {
		items := make([]string, len(keys))
		for i, k := range keys {
			items[i] = strings.Replace(item, "%s", k, 1)
		}
		body := items[0]
		if at > 1 {
			body = `{"` + list + `":[` + strings.Join(items, ",") + "]}"
		}
		return []byte("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	}}
}

// ask connects, and asks as l says.
func (w wire) ask(l load) (answers, error) {
	all := make([]asker, l.conns)
	for i := range all {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			return answers{}, err
		}
		defer c.Close()
		bursts := w.bursts(i, l)
		all[i] = func(end time.Time) ([]time.Duration, int, error) { return w.askOn(c, bursts, end) }
	}
	return l.together(all)
}

// bursts returns what connection i sends, in turn.
func (w wire) bursts(i int, l load) (bursts [][]byte) {
	for k := i; len(bursts) < 64; {
		keys := make([]string, w.at)
		for j := range keys {
			keys[j] = fmt.Sprintf("192.0.2.%d", k%l.keys)
			k += l.conns
		}
		bursts = append(bursts, w.burst(keys))
	}
	return bursts
}

// askOn sends a burst when the one before it was answered. An answer that is an error
// ends it, so that nothing else is measured.
func (w wire) askOn(c net.Conn, bursts [][]byte, end time.Time) (times []time.Duration, n int, err error) {
	c.SetDeadline(end.Add(10 * time.Second)) // one who waits for lines that do not come has failed
	buf := make([]byte, 64<<10)
	for at := time.Now(); at.Before(end); n += w.at {
		if _, err = c.Write(bursts[len(times)%len(bursts)]); err != nil {
			return times, n, err
		}
		for left := w.lines; left > 0; {
			got, err := c.Read(buf)
			if err != nil {
				return times, n, fmt.Errorf("%d of %d lines of the answer are missing: %w", left, w.lines, err)
			}
			if left == w.lines && !bytes.HasPrefix(buf[:got], []byte(w.begins)) {
				return times, n, fmt.Errorf("the answer is %.80q", buf[:got])
			}
			left -= bytes.Count(buf[:got], []byte{'\n'})
		}
		now := time.Now()
		times = append(times, now.Sub(at))
		at = now
	}
	return times, n, nil
}
