// Command server compares the RESP listener with redis-server, each in a process of
// its own, asked by the same client in the same run: decisions against INCR.
//
//	go run ./server -seconds 2 -passes 3
//	go run ./server -overload 60s
//
// Client and server share the machine's cores, so ratios count, not figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/rules"
	"github.com/lately-go/lately/server/engine"
	"github.com/lately-go/lately/server/respapi"
)

const benchRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 1000000000 per 1h}
`

func main() {
	serve := flag.Bool("serve", false, "be the server that is measured, and print its address")
	seconds := flag.Float64("seconds", 2, "how long each row of each pass takes")
	passes := flag.Int("passes", 3, "how often all rows are measured")
	conns := flag.Int("connections", 64, "how many connections ask")
	keys := flag.Int("keys", 10_000, "how many keys are asked for")
	addr := flag.String("lately", "", "address of a server that runs, with a rule per-client, instead of one of its own")
	five := flag.Duration("overload", 0, "ask with five times as many connections for so long, instead")
	flag.Parse()
	var err error
	switch {
	case *serve:
		err = beServer()
	case *five > 0:
		err = overload(*five, *conns, *keys)
	default:
		err = measure(time.Duration(*seconds*float64(time.Second)), *passes, *conns, *keys, *addr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// beServer serves until it is interrupted.
func beServer() error {
	file, err := rules.Parse("rules.yaml", []byte(benchRules))
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Config{Rules: file})
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := respapi.New(respapi.Config{Engine: e})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return s.Serve(ctx, l)
}

// A subject is a server that is measured.
type subject struct {
	name string
	addr string
	cmd  *exec.Cmd
}

func (s *subject) stop() {
	if s.cmd != nil {
		s.cmd.Process.Signal(os.Interrupt)
		s.cmd.Wait()
	}
}

// cpu returns how long the process has computed so far, as Linux tells it, or 0.
func (s *subject) cpu() time.Duration {
	if s.cmd == nil {
		return 0
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // a tick of USER_HZ
}

// startLately starts this program as a server.
func startLately() (*subject, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-serve")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		return nil, fmt.Errorf("the server did not say its address: %w", err)
	}
	return &subject{"lately", addr, cmd}, nil
}

// startRedis starts a redis-server that writes nothing, or returns nil.
func startRedis() (*subject, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		fmt.Println("SKIP redis-server: it is not installed (Debian: apt install redis-server)")
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning", "--dir", os.TempDir())
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return &subject{"redis-server", addr, cmd}, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	cmd.Process.Kill()
	return nil, fmt.Errorf("redis-server does not answer at %s", addr)
}
