package main

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// A row is one thing that is measured.
type row struct {
	what     string
	subject  *subject
	command  func(key string) []byte
	call     func(key string) error // in place of command: what another client does
	lines    int                    // of one answer
	pipeline int
	samples  []sample
}

// A sample is what one pass of a row has shown.
type sample struct {
	rate     float64 // answers a second
	p50, p99 time.Duration
	cpu      float64 // microseconds of the server for one answer
}

func measure(d time.Duration, passes, conns, keys int, addr string) error {
	lately := &subject{name: "lately", addr: addr}
	if addr == "" {
		var err error
		if lately, err = startLately(); err != nil {
			return err
		}
	}
	defer lately.stop()
	redis, err := startRedis()
	if err != nil {
		return err
	}
	if redis != nil {
		defer redis.stop()
	}
	rows := rowsOf(lately, redis)
	if redis != nil {
		peer := newRedisRate(redis.addr, conns)
		defer peer.client.Close()
		rows = append(rows, &row{what: "redis_rate Allow, its Go client", subject: redis, call: peer.take, pipeline: 1})
	}
	for range passes {
		for _, r := range rows {
			s, err := r.run(d, conns, keys)
			if err != nil {
				return fmt.Errorf("%s %s: %w", r.subject.name, r.what, err)
			}
			r.samples = append(r.samples, s)
		}
	}
	report(rows, conns, keys)
	return nil
}

func rowsOf(lately, redis *subject) []*row {
	incr := func(key string) []byte { return resp.AppendCommand(nil, "INCR", key) }
	take := func(key string) []byte { return resp.AppendCommand(nil, "TAKE", "per-client", key) }
	check := func(key string) []byte { return resp.AppendCommand(nil, "CHECK", "client", key) }
	ping := func(string) []byte { return resp.AppendCommand(nil, "PING") }
	var rows []*row
	for _, pipeline := range []int{1, 100} {
		if redis != nil {
			rows = append(rows,
				&row{what: "PING", subject: redis, command: ping, lines: 1, pipeline: pipeline},
				&row{what: "INCR", subject: redis, command: incr, lines: 1, pipeline: pipeline})
		}
		rows = append(rows,
			&row{what: "PING", subject: lately, command: ping, lines: 1, pipeline: pipeline},
			&row{what: "TAKE", subject: lately, command: take, lines: 9, pipeline: pipeline},
			&row{what: "CHECK", subject: lately, command: check, lines: 9, pipeline: pipeline})
	}
	return rows
}

// run asks for as long as d and returns what came of it.
func (r *row) run(d time.Duration, conns, keys int) (s sample, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	answers := 0
	dialed := make([]net.Conn, conns)
	for i := range dialed {
		if r.call != nil {
			break
		}
		if dialed[i], err = net.Dial("tcp", r.subject.addr); err != nil {
			return s, err
		}
		defer dialed[i].Close()
	}
	busy, began := r.subject.cpu(), time.Now()
	for i, c := range dialed {
		wg.Go(func() {
			ask := r.ask
			if r.call != nil {
				ask = r.askCall
			}
			times, n, e := ask(c, i, conns, keys, began.Add(d))
			mu.Lock()
			defer mu.Unlock()
			all, answers = append(all, times...), answers+n
			if e != nil {
				err = e
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	busy = r.subject.cpu() - busy
	if err != nil {
		return s, err
	}
	slices.Sort(all)
	return sample{
		rate: float64(answers) / took.Seconds(), p50: all[len(all)/2], p99: all[len(all)*99/100],
		cpu: float64(busy.Microseconds()) / float64(answers),
	}, nil
}

// ask sends bursts of the row's pipeline and waits for their answers, and returns how
// long each burst took. An error answer ends it, so that nothing else is measured.
func (r *row) ask(c net.Conn, i, conns, keys int, end time.Time) (times []time.Duration, n int, err error) {
	var bursts [][]byte
	for k := i; len(bursts) < 64; {
		var b []byte
		for range r.pipeline {
			b = append(b, r.command(fmt.Sprintf("192.0.2.%d", k%keys))...)
			k += conns
		}
		bursts = append(bursts, b)
	}
	buf := make([]byte, 64<<10)
	for at := time.Now(); at.Before(end); n += r.pipeline {
		if _, err = c.Write(bursts[len(times)%len(bursts)]); err != nil {
			return times, n, err
		}
		for left := r.lines * r.pipeline; left > 0; {
			got, err := c.Read(buf)
			if err != nil {
				return times, n, err
			}
			if buf[0] == '-' {
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

// askCall is ask through another client.
func (r *row) askCall(_ net.Conn, i, conns, keys int, end time.Time) (times []time.Duration, n int, err error) {
	at := time.Now()
	for k := i; at.Before(end); k += conns {
		if err := r.call(fmt.Sprintf("192.0.2.%d", k%keys)); err != nil {
			return times, n, err
		}
		n++
		now := time.Now()
		times = append(times, now.Sub(at))
		at = now
	}
	return times, n, nil
}

// report prints the median of each row's samples, and ratios to INCR.
func report(rows []*row, conns, keys int) {
	median := func(r *row, of func(sample) float64) float64 {
		v := make([]float64, len(r.samples))
		for i, s := range r.samples {
			v[i] = of(s)
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	rate := func(s sample) float64 { return s.rate }
	fmt.Printf("%d connections, %d keys, %d passes, medians\n\n", conns, keys, len(rows[0].samples))
	fmt.Println("| server | command | pipeline | a second | to INCR | p50 | p99 | server CPU µs each |")
	fmt.Println("|---|---|---:|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		ratio := "-"
		for _, o := range rows {
			if o.what == "INCR" && o.pipeline == r.pipeline {
				ratio = fmt.Sprintf("%.2f", median(r, rate)/median(o, rate))
			}
		}
		duration := func(of func(sample) time.Duration) time.Duration {
			return time.Duration(median(r, func(s sample) float64 { return float64(of(s)) })).Round(time.Microsecond)
		}
		fmt.Printf("| %s | %s | %d | %.0f | %s | %v | %v | %.2f |\n", r.subject.name, r.what, r.pipeline, median(r, rate), ratio,
			duration(func(s sample) time.Duration { return s.p50 }), duration(func(s sample) time.Duration { return s.p99 }),
			median(r, func(s sample) float64 { return s.cpu }))
	}
}
