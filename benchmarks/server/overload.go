package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// overload asks with as many connections as keep the server busy, and then with five
// times as many for as long as d: what is answered must not fall, nor memory grow.
func overload(d time.Duration, conns, keys int) error {
	lately, err := startLately()
	if err != nil {
		return err
	}
	defer lately.stop()
	take := func(key string) []byte { return resp.AppendCommand(nil, "TAKE", "per-client", key) }
	r := &row{what: "TAKE", subject: lately, command: take, lines: 9, pipeline: 1}
	fmt.Println("| connections | for | a second | p50 | p99 | memory of the server |")
	fmt.Println("|---:|---:|---:|---:|---:|---:|")
	for _, x := range []struct {
		conns int
		d     time.Duration
	}{{conns, d / 6}, {5 * conns, d}, {conns, d / 6}} {
		s, err := r.run(x.d, x.conns, keys)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %v | %.0f | %v | %v | %s |\n", x.conns, x.d, s.rate, s.p50.Round(time.Microsecond), s.p99.Round(time.Microsecond), lately.memory())
	}
	return nil
}

// memory returns what the process has resident, as Linux tells it.
func (s *subject) memory() string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/status")
	if err != nil {
		return "-"
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "-"
}
