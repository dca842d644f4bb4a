//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mirror runs deploy/nftables/lately-nft for the rule per-client of the server at url
// until the test ends, with a program that is called nft.
func mirror(t *testing.T, url, nft string) (complaints func() string) {
	t.Helper()
	for _, tool := range []string{"sh", "curl", "jq", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP nftables: there is no %s here", tool)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nft"), []byte("#!/bin/sh\n"+nft+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("..", "..", "deploy", "nftables", "lately-nft"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", script, url, "per-client")
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := os.Create(filepath.Join(dir, "said")) // a file: nobody has to copy
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the script and all that it has started
		_ = cmd.Wait()
		said.Close()
	})
	return func() string {
		text, _ := os.ReadFile(said.Name())
		return string(text)
	}
}

// banClient bans a client by hand.
func banClient(t *testing.T, s *Server, key string, d time.Duration) {
	t.Helper()
	if _, err := s.engine.Ban("per-client", []string{key}, d, "", ""); err != nil {
		t.Fatal(err)
	}
}

func unbanClient(t *testing.T, s *Server, key string) {
	t.Helper()
	if ok, err := s.engine.Unban("per-client", []string{key}); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// begin has the rule per-client begin a ban of whatever an event names as its client.
func begin(t *testing.T, s *Server, client string) {
	t.Helper()
	c := s.engine.Session()
	for range 5 {
		ev := c.Event()
		ev.SetNamedString("client", client)
		if _, err := c.Check(ev, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// notClients is what events may name as their client, and no packet must be dropped
// for. The first would drop all packets, the second an address for ever.
var notClients = []string{
	"0.0.0.0/0", "192.0.2.67\n", "x\n192.0.2.68", "192.0.2.69 ", "$(reboot); 192.0.2.66", "not an address", "", "-", "\n",
	"0.0.0.0", "0.0.0.0/16", "127.0.0.1", "127.1.0.0/16", "10.0.0.0/8", "192.0.2.0/15", "169.254.169.254", "224.0.0.1", "255.255.255.255",
	"256.1.1.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/24/24", "...", "192.0.2.70\x00",
	"::", "::1", "::/0", "::/64", "::/32", "0:0:0:1::/64", "2001::/16", "2000::/3", "2001:db8::/31", "fe80::1", "fe80::/64", "ff02::1", "2001:db8::/129",
	"2001:db8::1\n", "abc", "1:2", "dead:beef", "2001:DB8::%eth0", "2001:db8::1,10.0.0.0/8",
}

// Bans and unbans reach nft, those from before the start included, and nothing that is
// no address of a client does.
func TestBansReachNftables(t *testing.T) {
	s, url := started(t, deployed(t))
	banClient(t, s, "192.0.2.1", time.Hour)
	for _, client := range notClients[:len(notClients)/2] {
		begin(t, s, client)
	}
	log := filepath.Join(t.TempDir(), "log")
	complaints := mirror(t, url, fmt.Sprintf("echo \"$@\" >> %s", log))
	wait := func(want string) string {
		t.Helper()
		for range 500 {
			text, _ := os.ReadFile(log)
			if strings.Contains(string(text), want) {
				return string(text)
			}
			time.Sleep(10 * time.Millisecond)
		}
		text, _ := os.ReadFile(log)
		t.Fatalf("no %q in\n%s\n%s", want, text, complaints())
		return ""
	}
	wait("add element inet lately banned4 { 192.0.2.1 timeout 3")
	for _, client := range notClients {
		begin(t, s, client)
	}
	banClient(t, s, "2001:db8::1", time.Hour)
	banClient(t, s, "198.51.100.255", time.Hour)
	wait("add element inet lately banned6 { 2001:db8::/64 timeout 3")
	wait("add element inet lately banned4 { 198.51.100.255 timeout 3")
	unbanClient(t, s, "192.0.2.1")
	all := wait("delete element inet lately banned4 { 192.0.2.1 }\n")
	for line := range strings.Lines(all) {
		if !strings.HasPrefix(line, "flush set ") && !strings.Contains(line, "192.0.2.1 ") && !strings.Contains(line, "2001:db8::/64 ") && !strings.Contains(line, "198.51.100.255 ") {
			t.Errorf("what is no address of a client has got through: %s", line)
		}
	}
	if said := complaints(); !strings.Contains(said, `not passed on: "0.0.0.0/0"`) || !strings.Contains(said, `"192.0.2.67\n"`) {
		t.Errorf("stderr says %s", said)
	}
}

// In the kernel's own nftables, in a network of its own, each ban has its own time and
// end, whatever neighbours it has, and nobody else is in the sets.
func TestBansInRealNftables(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		nft = "/usr/sbin/nft"
	}
	if _, err := os.Stat(nft); err != nil || exec.Command("unshare", "-n", nft, "list", "ruleset").Run() != nil {
		t.Skip("SKIP the kernel's nftables: there is no nft here, or no right to a network of one's own")
	}
	apart := exec.Command("unshare", "-n", "sleep", "600")
	if err := apart.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = apart.Process.Kill()
		_ = apart.Wait()
	})
	run := func(args ...string) ([]byte, error) {
		args = append([]string{"-t", strconv.Itoa(apart.Process.Pid), "-n", nft}, args...)
		return exec.Command("nsenter", args...).CombinedOutput()
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	for range 500 { // until unshare has done it: else the rules would be those of this machine
		if there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", apart.Process.Pid)); err == nil && there != own {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", apart.Process.Pid)); err != nil || there == own {
		t.Fatalf("no network apart: %s, %v", there, err)
	}
	if out, err := run("-f", filepath.Join("..", "..", "deploy", "nftables", "lately.nft")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	s, url := started(t, deployed(t))
	for _, key := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8:0:1::1"} {
		banClient(t, s, key, time.Hour)
	}
	complaints := mirror(t, url, fmt.Sprintf("exec nsenter -t %d -n %s \"$@\"", apart.Process.Pid, nft))
	want := func(set string, elements ...string) {
		t.Helper()
		var got []string
		for range 500 {
			out, err := run("-j", "list", "set", "inet", "lately", set)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got = elementsOf(t, out); slices.Equal(got, elements) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s has %q, want %q\n%s", set, got, elements, complaints())
	}
	want("banned4", "192.0.2.1 1h", "192.0.2.2 1h", "192.0.2.3 1h")
	want("banned6", "2001:db8:0:1::/64 1h", "2001:db8::/64 1h")
	unbanClient(t, s, "192.0.2.2")
	want("banned4", "192.0.2.1 1h", "192.0.2.3 1h")
	banClient(t, s, "192.0.2.3", 3*time.Hour)
	want("banned4", "192.0.2.1 1h", "192.0.2.3 3h")
	unbanClient(t, s, "192.0.2.3")
	banClient(t, s, "192.0.2.3", 2*time.Hour)
	want("banned4", "192.0.2.1 1h", "192.0.2.3 2h")
}

// elementsOf returns the elements of a set as nft -j lists it, in order, with their
// time in hours, rounded up.
func elementsOf(t *testing.T, out []byte) (elements []string) {
	t.Helper()
	var list struct {
		Nftables []struct {
			Set struct {
				Elem []struct {
					Elem struct {
						Val     json.RawMessage
						Timeout int
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, entry := range list.Nftables {
		for _, e := range entry.Set.Elem {
			var address string
			var network struct {
				Prefix struct {
					Addr string
					Len  int
				}
			}
			if json.Unmarshal(e.Elem.Val, &address) != nil {
				if err := json.Unmarshal(e.Elem.Val, &network); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				address = fmt.Sprintf("%s/%d", network.Prefix.Addr, network.Prefix.Len)
			}
			elements = append(elements, fmt.Sprintf("%s %dh", address, (e.Elem.Timeout+3599)/3600))
		}
	}
	slices.Sort(elements)
	return elements
}
