package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// gubernatorConns is how many connections all callers share: gubernator's client is one
// of gRPC, which needs no connection for each, and is faster with few.
const gubernatorConns = 4

// gubernator is the limiter of that name, built from the module in gubernator/.
type gubernator struct {
	dir   string // or "" where it cannot be built
	nodes []*subject
}

// buildGubernator builds it, or says why it cannot be had.
func buildGubernator() (*gubernator, error) {
	dir, err := os.MkdirTemp("", "gubernator")
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-C", "server/gubernator", "-o", filepath.Join(dir, "gubernator"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		fmt.Printf("SKIP gubernator: it cannot be built here: %v\n%s", err, out)
		return &gubernator{}, nil
	}
	return &gubernator{dir: dir}, nil
}

func (g *gubernator) close() {
	for _, n := range g.nodes {
		n.stop()
	}
	if g.dir != "" {
		os.RemoveAll(g.dir)
	}
}

// rows starts a node as gubernator ships it, but that nobody is sent traces, and one
// that traces nothing, and returns their rows.
func (g *gubernator) rows() (rows []*row, err error) {
	if g.dir == "" {
		return nil, nil
	}
	for _, x := range []struct {
		what string
		env  []string
	}{
		{"GetRateLimits", nil},
		{"GetRateLimits, tracing off", []string{"OTEL_TRACES_SAMPLER=always_off", "GUBER_TRACING_LEVEL=ERROR"}},
	} {
		n := &subject{name: "gubernator", cmd: exec.Command(filepath.Join(g.dir, "gubernator"))}
		n.cmd.Env = append(append(os.Environ(), "OTEL_TRACES_EXPORTER=none"), x.env...)
		if err := start(n.cmd, &n.addr); err != nil {
			return nil, err
		}
		g.nodes = append(g.nodes, n)
		for _, at := range []int{1, 100} {
			ask := func(l load) (answers, error) { return g.ask(n.addr, l, at) }
			rows = append(rows, &row{subject: n, what: x.what + ", its Go client", floor: incr, at: at, ask: ask})
		}
	}
	return rows, nil
}

// ask has a process with gubernator's client ask.
func (g *gubernator) ask(addr string, l load, at int) (a answers, err error) {
	cmd := exec.Command(filepath.Join(g.dir, "gubernator"), "-ask", addr, "-seconds", fmt.Sprint(l.d.Seconds()),
		"-callers", strconv.Itoa(l.conns), "-connections", strconv.Itoa(min(gubernatorConns, l.conns)), "-keys", strconv.Itoa(l.keys), "-items", strconv.Itoa(at))
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	out, err := cmd.Output()
	if err != nil {
		return a, err
	}
	_, err = fmt.Sscan(string(out), &a.n, &a.took, &a.p50, &a.p99)
	return a, err
}
