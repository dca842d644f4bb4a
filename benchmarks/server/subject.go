package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A subject is a server that is measured: a process.
type subject struct {
	name string
	addr string
	web  string // where it answers HTTP, if it does
	cmd  *exec.Cmd
}

// stop ends it. A subject that was not started is nil.
func (s *subject) stop() {
	if s != nil {
		s.cmd.Process.Signal(os.Interrupt)
		s.cmd.Wait()
	}
}

// cpu returns how long the process has computed so far, as Linux tells it, or 0.
func (s *subject) cpu() time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // a tick of USER_HZ
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

// start starts a command that prints so many addresses.
func start(cmd *exec.Cmd, addrs ...*string) error {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for _, a := range addrs {
		if _, err := fmt.Fscanln(out, a); err != nil {
			cmd.Process.Kill()
			cmd.Wait()
			return fmt.Errorf("%s did not say its address: %w", cmd, err)
		}
	}
	return nil
}

// startSelf starts this program as a server.
func startSelf(name, flag string) (*subject, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &subject{name: name, cmd: exec.Command(self, flag)}
	if flag != "-echo" {
		return s, start(s.cmd, &s.addr, &s.web)
	}
	return s, start(s.cmd, &s.web)
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
			return &subject{name: "redis-server", addr: addr, cmd: cmd}, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	cmd.Process.Kill()
	return nil, fmt.Errorf("redis-server does not answer at %s", addr)
}
