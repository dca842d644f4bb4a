//go:build linux

package netnstest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Namespace is a network of its own.
type Namespace struct {
	t   *testing.T
	pid int
}

// New returns a network that ends with the test, or skips the test without the right to make one.
func New(t *testing.T) Namespace {
	t.Helper()
	if out, err := exec.Command("unshare", "-n", "nft", "list", "ruleset").CombinedOutput(); err != nil {
		t.Skipf("SKIP the kernel's nftables: %v: %s", err, out)
	}
	apart := exec.Command("unshare", "-n", "sleep", "600")
	if err := apart.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = apart.Process.Kill()
		_ = apart.Wait()
	})
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	// Wait until unshare has finished: before, rules would change this machine.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", apart.Process.Pid)); err == nil && there != own {
			return Namespace{t, apart.Process.Pid}
		}
	}
	t.Fatal("there is no network apart after a minute")
	return Namespace{}
}

// Try runs a program in n, and returns its output and its exit status.
func (n Namespace) Try(stdin, program string, args ...string) (out string, code int) {
	n.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(n.pid), "-n", program}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		n.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// Run is Try for what must succeed.
func (n Namespace) Run(stdin, program string, args ...string) string {
	n.t.Helper()
	out, code := n.Try(stdin, program, args...)
	if code != 0 {
		n.t.Fatalf("%s %q: status %d\n%s", program, args, code, out)
	}
	return out
}

// Use puts a program in PATH that runs in n instead of the program of that name, for this process
// and its children. It returns its path.
func (n Namespace) Use(program string) string {
	n.t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		n.t.Fatal(err)
	}
	dir := n.t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec nsenter -t %d -n %s \"$@\"\n", n.pid, path)
	own := filepath.Join(dir, filepath.Base(program))
	if err := os.WriteFile(own, []byte(script), 0o700); err != nil {
		n.t.Fatal(err)
	}
	n.t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return own
}

// Link joins n and another network by a cable, with these addresses at its ends.
func (n Namespace) Link(other Namespace, here, there []string) {
	n.t.Helper()
	n.Run("", "ip", "link", "set", "lo", "up")
	n.Run("", "ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
	n.Run("", "ip", "link", "set", "far", "netns", strconv.Itoa(other.pid))
	for _, a := range here {
		n.Run("", "ip", "addr", "add", a, "dev", "near", "nodad")
	}
	n.Run("", "ip", "link", "set", "near", "up")
	for _, a := range there {
		other.Run("", "ip", "addr", "add", a, "dev", "far", "nodad")
	}
	other.Run("", "ip", "link", "set", "far", "up")
}

// Cut drops all packets to n from now on, without an error to the sender. heal ends that.
func (n Namespace) Cut() (heal func()) {
	n.t.Helper()
	n.Run("table inet cut {\nchain in {\ntype filter hook input priority 0; policy drop;\n}\n}\n", "nft", "-f", "-")
	return func() {
		n.t.Helper()
		n.Run("", "nft", "delete", "table", "inet", "cut")
	}
}

// Dial connects from n.
func (n Namespace) Dial(ctx context.Context, d *net.Dialer, address string) (net.Conn, error) {
	// A socket is of the network of the thread that makes it. If the thread cannot return from n, it stays
	// locked, and ends with the goroutine.
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.pid))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err := d.DialContext(ctx, "tcp", address)
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		return nil, back
	}
	runtime.UnlockOSThread()
	return conn, err
}

// Exit statuses of curl, as returned by Connect.
const (
	Refused = 7  // the kernel has answered: no listener
	Dropped = 28 // no answer within a second
)

// Connect sends packets from an address of n to one without a listener, and returns the result.
func (n Namespace) Connect(from, to string) (status int) {
	n.t.Helper()
	_, status = n.Try("", "curl", "-s", "-g", "--noproxy", "*", "-m", "1", "--interface", from, "http://"+to+":9/")
	return status
}
