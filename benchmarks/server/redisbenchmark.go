package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// A standardRow is one command line of redis-benchmark, and what it printed in each pass.
type standardRow struct {
	subject *subject
	command []string
	at      int // depth of the pipeline
	samples []standardSample
}

// A standardSample is one pass of a row. Reads and switches are those of the server's
// process for one request, as Linux counts them.
type standardSample struct {
	rate, p50, p99  float64 // requests a second; milliseconds
	reads, switches float64
	cpu             float64 // microseconds
}

// listKey holds as many elements as an answer to TAKE has, so that LRANGE is Redis
// answering as much as lately does.
const listKey = "seven"

// measureStandard prints what redis-benchmark says of redis-server and of lately, in turns.
func measureStandard(passes, requests, conns, keys int) error {
	tool, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return fmt.Errorf("redis-benchmark is not installed (Debian: apt install redis-tools): %w", err)
	}
	lately, err := startSelf("lately", "-serve")
	if err != nil {
		return err
	}
	defer lately.stop()
	redis, err := startRedis()
	if err != nil {
		return err
	}
	if redis == nil {
		return fmt.Errorf("redis-server is needed as the row to compare with")
	}
	defer redis.stop()
	fill := []string{"RPUSH", listKey, "1", "1000000000", "999999999", "0", "3600000", "per-client", "0"}
	if _, err := runStandard(tool, redis, 1, 1, 1, 1, fill); err != nil {
		return err
	}
	var rows []*standardRow
	for _, at := range []int{1, 100} {
		rows = append(rows,
			&standardRow{subject: redis, at: at, command: []string{"INCR", "key:__rand_int__"}},
			&standardRow{subject: redis, at: at, command: []string{"LRANGE", listKey, "0", "-1"}},
			&standardRow{subject: lately, at: at, command: []string{"TAKE", "per-client", "key:__rand_int__"}},
			&standardRow{subject: lately, at: at, command: []string{"CHECK", "client", "key:__rand_int__"}},
			&standardRow{subject: lately, at: at, command: []string{"CHARGE", "per-client", "key:__rand_int__"}},
			&standardRow{subject: lately, at: at, command: []string{"RESERVE", "per-client", "key:__rand_int__"}})
	}
	for range passes {
		for _, r := range rows {
			n := requests
			if r.at > 1 {
				n *= 10 // a pass takes as long, roughly
			}
			s, err := runStandard(tool, r.subject, n, conns, r.at, keys, r.command)
			if err != nil {
				return err
			}
			r.samples = append(r.samples, s)
		}
	}
	fmt.Printf("redis-benchmark -c %d -r %d -n %d (ten times as many with -P 100), %d passes in turns, medians\n\n", conns, keys, requests, passes)
	reportStandard(rows)
	return nil
}

// runStandard runs redis-benchmark once.
func runStandard(tool string, s *subject, requests, conns, at, keys int, command []string) (standardSample, error) {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return standardSample{}, err
	}
	args := []string{"-h", host, "-p", port, "-c", strconv.Itoa(conns), "-n", strconv.Itoa(requests), "-P", strconv.Itoa(at), "-r", strconv.Itoa(keys), "--csv"}
	cmd := exec.Command(tool, append(args, command...)...)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	busy, reads, switches := s.cpu(), s.reads(), s.switches()
	out, err := cmd.Output()
	if err != nil {
		return standardSample{}, fmt.Errorf("%s: %w: %s", cmd, err, talk.String())
	}
	n := float64(requests)
	sample := standardSample{
		cpu:      float64((s.cpu() - busy).Microseconds()) / n,
		reads:    float64(s.reads()-reads) / n,
		switches: float64(s.switches()-switches) / n,
	}
	return sample, sample.parse(out)
}

// parse reads what redis-benchmark --csv prints: a header and one row.
func (s *standardSample) parse(out []byte) error {
	table, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(table) != 2 {
		return fmt.Errorf("redis-benchmark printed %q: must be a header and one row of CSV (%v)", out, err)
	}
	for name, to := range map[string]*float64{"rps": &s.rate, "p50_latency_ms": &s.p50, "p99_latency_ms": &s.p99} {
		i := slices.Index(table[0], name)
		if i < 0 {
			return fmt.Errorf("redis-benchmark printed no column %s in %q", name, out)
		}
		if *to, err = strconv.ParseFloat(table[1][i], 64); err != nil {
			return fmt.Errorf("redis-benchmark printed no number as %s: %w", name, err)
		}
	}
	return nil
}

// reads returns how many read system calls the process has made, those that came back
// with EAGAIN included.
func (s *subject) reads() int {
	return s.counter("io", "syscr:")
}

// switches returns how often the threads of the process have gone to sleep.
func (s *subject) switches() (n int) {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/task")
	if err != nil {
		return 0
	}
	for _, t := range threads {
		n += s.counter("task/"+t.Name()+"/status", "voluntary_ctxt_switches:")
	}
	return n
}

// counter returns the number that stands after name in a file of /proc/PID, or 0.
func (s *subject) counter(file, name string) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/" + file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(rest))
			return n
		}
	}
	return 0
}

func (r *standardRow) median(of func(standardSample) float64) float64 {
	v := make([]float64, len(r.samples))
	for i, s := range r.samples {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func (r *standardRow) rate() float64 {
	return r.median(func(s standardSample) float64 { return s.rate })
}

// reportStandard prints the medians of all rows beside INCR and LRANGE of the same depth.
func reportStandard(rows []*standardRow) {
	rateOf := func(command string, at int) float64 {
		i := slices.IndexFunc(rows, func(r *standardRow) bool { return r.command[0] == command && r.at == at })
		return rows[i].rate()
	}
	fmt.Println("| server | command | -P | a second | of INCR | of LRANGE | p50 ms | p99 ms | reads | sleeps | server CPU µs |")
	fmt.Println("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		fmt.Printf("| %s | %s | %d | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
			r.subject.name, strings.Join(r.command, " "), r.at, r.rate(), r.rate()/rateOf(incr, r.at), r.rate()/rateOf("LRANGE", r.at),
			r.median(func(s standardSample) float64 { return s.p50 }), r.median(func(s standardSample) float64 { return s.p99 }),
			r.median(func(s standardSample) float64 { return s.reads }), r.median(func(s standardSample) float64 { return s.switches }),
			r.median(func(s standardSample) float64 { return s.cpu }))
	}
}
