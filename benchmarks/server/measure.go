package main

import (
	"fmt"
	"slices"
	"time"
)

// A sample is what one pass of a row has shown.
type sample struct {
	rate     float64 // decisions a second
	p50, p99 time.Duration
	cpu      float64 // microseconds of the server for one decision
}

// measure prints a table of all rows, or of those of lately alone.
func measure(l load, passes int, alone bool) error {
	lately, err := startSelf("lately", "-serve")
	if err != nil {
		return err
	}
	defer lately.stop()
	if alone {
		rows := rowsOf(lately, &subject{}, nil)
		return l.measure(slices.DeleteFunc(rows, func(r *row) bool { return r.subject != lately }), passes)
	}
	echoes, err := startSelf("net/http", "-echo")
	if err != nil {
		return err
	}
	defer echoes.stop()
	redis, err := startRedis()
	if err != nil {
		return err
	}
	defer redis.stop()
	rows := rowsOf(lately, echoes, redis)
	if redis != nil {
		peer := newRedisRate(redis.addr, l.conns)
		defer peer.client.Close()
		rows = append(rows, &row{subject: redis, what: "redis_rate Allow, its Go client", floor: incr, at: 1, ask: peer.ask})
	}
	peer, err := buildGubernator()
	if err != nil {
		return err
	}
	defer peer.close()
	more, err := peer.rows()
	if err != nil {
		return err
	}
	return l.measure(append(rows, more...), passes)
}

// measure asks rows in turns, and prints their medians.
func (l load) measure(rows []*row, passes int) error {
	for range passes {
		for _, r := range rows {
			if err := r.sample(l); err != nil {
				return fmt.Errorf("%s %s: %w", r.subject.name, r.what, err)
			}
		}
	}
	fmt.Printf("%d connections, %d keys, %d passes of %v, medians\n\n", l.conns, l.keys, passes, l.d)
	report(rows)
	return nil
}

// sample asks as l says, and keeps what came of it.
func (r *row) sample(l load) error {
	busy := r.subject.cpu()
	a, err := r.ask(l)
	if err != nil {
		return err
	}
	busy = r.subject.cpu() - busy
	r.samples = append(r.samples, sample{
		rate: float64(a.n) / a.took.Seconds(), p50: a.p50, p99: a.p99, cpu: float64(busy.Microseconds()) / float64(a.n),
	})
	return nil
}

// median returns the median of what the row's samples have.
func (r *row) median(of func(sample) float64) float64 {
	v := make([]float64, len(r.samples))
	for i, s := range r.samples {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func (r *row) rate() float64 { return r.median(func(s sample) float64 { return s.rate }) }

func (r *row) time(of func(sample) time.Duration) time.Duration {
	return time.Duration(r.median(func(s sample) float64 { return float64(of(s)) })).Round(time.Microsecond)
}

// report prints the medians of all rows, beside the floor of each that asks for as much
// at once.
func report(rows []*row) {
	ratio := func(r *row) string {
		for _, o := range rows {
			if o.what == r.floor && o.at == r.at {
				return fmt.Sprintf("%.2f", r.rate()/o.rate())
			}
		}
		return "-"
	}
	fmt.Println("| server | asked for | at once | a second | of its floor | p50 | p99 | server CPU µs each |")
	fmt.Println("|---|---|---:|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		fmt.Printf("| %s | %s | %d | %.0f | %s | %v | %v | %.2f |\n", r.subject.name, r.what, r.at, r.rate(), ratio(r),
			r.time(func(s sample) time.Duration { return s.p50 }), r.time(func(s sample) time.Duration { return s.p99 }),
			r.median(func(s sample) float64 { return s.cpu }))
	}
}
