//go:build linux

package enforce

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/netnstest"
)

// A namespace is a network of its own, with an Enforcer.
type namespace struct {
	netnstest.Namespace
	t *testing.T
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	return namespace{netnstest.New(t), t}
}

// enforcer returns an Enforcer for n, which does not run, in place of this machine's own nft.
func (n namespace) enforcer() *Enforcer {
	n.t.Helper()
	n.Use("nft")
	c := config(n.t)
	c.NFTables = true
	e := must.Get(New(c))(n.t)
	return e
}

var element = regexp.MustCompile(`([0-9a-f:.]+) timeout \S+ expires (\w+)`)

// elements returns the dropped networks, with their times in hours, rounded up; none if there is no table.
func (n namespace) elements() (all []string) {
	n.t.Helper()
	table, _ := n.Try("list table inet lately\n", "nft", "-f", "-")
	for part := range strings.SplitSeq(table, "\tset ") {
		name, rest, _ := strings.Cut(part, " ")
		_, bits, _ := strings.Cut(name, "_")
		for _, m := range element.FindAllStringSubmatch(rest, -1) {
			left, err := time.ParseDuration(m[2]) // no test has days
			if err != nil {
				n.t.Fatalf("%q: %v", m, err)
			}
			all = append(all, fmt.Sprintf("%s/%s %dh", m[1], bits, (left+time.Hour-1)/time.Hour))
		}
	}
	slices.Sort(all)
	return all
}

// want waits until the elements are these.
func (n namespace) want(e *Enforcer, elements ...string) {
	n.t.Helper()
	slices.Sort(elements)
	eventually(n.t, func() error {
		if s := e.Status().Targets[0]; s.Lag != 0 {
			return fmt.Errorf("the state of the target is %+v", s)
		}
		if got := n.elements(); !slices.Equal(got, elements) {
			return fmt.Errorf("the elements are %q, want %q", got, elements)
		}
		return nil
	})
}

// Each ban has its own time and end in the kernel, whatever its neighbours and the networks
// around it.
func TestNFTablesElements(t *testing.T) {
	n := newNamespace(t)
	e := n.enforcer()
	hours := func(client string, h int) api.Ban { return banOf(client, time.Duration(h)*time.Hour) }
	must.Do(t, e.Replace(all(hours("192.0.2.1", 1), hours("192.0.2.2", 1), hours("192.0.2.0/24", 2), hours("192.0.0.0/16", 3), hours("2001:db8::/64", 1), hours("2001:db8:0:1::/64", 1))))
	run(t, e)
	n.want(e, "192.0.2.1/32 1h", "192.0.2.2/32 1h", "192.0.2.0/24 2h", "192.0.0.0/16 3h", "2001:db8::/64 1h", "2001:db8:0:1::/64 1h")
	e.Remove("client", []string{"192.0.2.2"})
	e.Remove("client", []string{"192.0.0.0/16"})
	longer := hours("192.0.2.1", 5)
	e.Add(&longer)
	other := hours("2001:db8::7", 4) // a new length of prefix
	e.Add(&other)
	n.want(e, "192.0.2.1/32 5h", "192.0.2.0/24 2h", "2001:db8::/64 1h", "2001:db8:0:1::/64 1h", "2001:db8::7/128 4h")
	shorter := hours("192.0.2.1", 2)
	e.Add(&shorter)
	again := hours("192.0.2.2", 3)
	e.Add(&again)
	n.want(e, "192.0.2.1/32 2h", "192.0.2.2/32 3h", "192.0.2.0/24 2h", "2001:db8::/64 1h", "2001:db8:0:1::/64 1h", "2001:db8::7/128 4h")
	soon := banOf("192.0.2.2", 500*time.Millisecond)
	e.Add(&soon)
	n.want(e, "192.0.2.1/32 2h", "192.0.2.0/24 2h", "2001:db8::/64 1h", "2001:db8:0:1::/64 1h", "2001:db8::7/128 4h")
}

// Deleted elements are added again, and other tables stay as they are.
func TestNFTablesRepairs(t *testing.T) {
	n := newNamespace(t)
	e := n.enforcer()
	must.Do(t, e.Replace(all(banOf("192.0.2.1", time.Hour))))
	e.runners[0].pace.verify = 100 * time.Millisecond
	run(t, e)
	n.want(e, "192.0.2.1/32 1h")
	for i, damage := range []string{"flush set inet lately ipv4_32", "flush chain inet lately banned", "delete table inet lately", "flush ruleset"} {
		n.Run("add table inet other\n"+damage+"\n", "nft", "-f", "-")
		eventually(t, func() error {
			if s := e.Status().Targets[0]; s.Repairs != uint64(i)+1 || s.Error != "" {
				return fmt.Errorf("after %s, the state is %+v", damage, s)
			}
			return nil
		})
		n.want(e, "192.0.2.1/32 1h")
		eventually(t, func() error {
			if out := n.Run("list chain inet lately banned\n", "nft", "-f", "-"); strings.Count(out, " drop") != 1 {
				return fmt.Errorf("after %s, the chain is\n%s", damage, out)
			}
			return nil
		})
	}
	n.Run("add table inet other\n", "nft", "-f", "-")
	b := banOf("198.51.100.0/24", time.Hour)
	e.Add(&b)
	n.want(e, "192.0.2.1/32 1h", "198.51.100.0/24 1h")
	if out := n.Run("list ruleset\n", "nft", "-f", "-"); !strings.Contains(out, "table inet other") {
		t.Errorf("another table is gone:\n%s", out)
	}
}

// The kernel drops the packets of banned clients and of no others, and allows them again
// after an unban.
func TestNFTablesDrops(t *testing.T) {
	host, outside := newNamespace(t), newNamespace(t)
	host.Link(outside.Namespace, []string{"198.51.100.1/24", "2001:db8:9::1/64"},
		[]string{"198.51.100.2/24", "198.51.100.3/24", "2001:db8:9::2/64", "2001:db8:9::3/64"})
	const refused, dropped = netnstest.Refused, netnstest.Dropped
	want := func(n namespace, from, to string, code int) {
		t.Helper()
		eventually(t, func() error {
			if got := n.Connect(from, to); got != code {
				return fmt.Errorf("from %s: curl ends with %d, want %d", from, got, code)
			}
			return nil
		})
	}
	e := host.enforcer()
	must.Do(t, e.Replace(all()))
	run(t, e)
	for _, from := range []string{"198.51.100.2", "198.51.100.3"} {
		want(outside, from, "198.51.100.1", refused)
	}
	for _, client := range []string{"198.51.100.2", "2001:db8:9::2"} {
		b := banOf(client, time.Hour)
		e.Add(&b)
	}
	want(outside, "198.51.100.2", "198.51.100.1", dropped)
	want(outside, "2001:db8:9::2", "[2001:db8:9::1]", dropped)
	want(outside, "198.51.100.3", "198.51.100.1", refused)
	want(outside, "2001:db8:9::3", "[2001:db8:9::1]", refused)

	e.Remove("client", []string{"198.51.100.2"})
	network := banOf("2001:db8:9::/64", time.Hour)
	e.Add(&network)
	want(outside, "198.51.100.2", "198.51.100.1", refused)
	want(outside, "2001:db8:9::3", "[2001:db8:9::1]", dropped)

	own := banOf("198.51.100.1", time.Hour) // of the host itself
	e.Add(&own)
	eventually(t, func() error {
		if lag := e.Status().Targets[0].Lag; lag != 0 {
			return fmt.Errorf("the lag is %d ms", lag)
		}
		return nil
	})
	want(host, "198.51.100.1", "198.51.100.1", refused)
}

// 20,000 bans are one transaction.
func TestNFTablesManyBans(t *testing.T) {
	n := newNamespace(t)
	e := n.enforcer()
	var bans []api.Ban
	for i := range 20_000 {
		bans = append(bans, banOf(fmt.Sprintf("10.%d.%d.%d", i%7, i/250, i%250), time.Hour))
	}
	began := time.Now()
	must.Do(t, e.Replace(all(bans...)))
	run(t, e)
	eventually(t, func() error {
		if s := e.Status().Targets[0]; s.Lag != 0 {
			return fmt.Errorf("the state of the target is %+v", s)
		}
		return nil
	})
	t.Logf("20,000 bans were set in %v", time.Since(began))
	if got := len(n.elements()); got != 20_000 {
		t.Errorf("%d elements, want 20,000", got)
	}
	if s := e.Status().Targets[0]; s.Batches != 1 {
		t.Errorf("%d batches, want 1", s.Batches)
	}
}

// Without the right to change nftables, the error contains the message of nft.
func TestNFTablesFails(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "nft"), []byte("#!/bin/sh\necho 'Operation not permitted (you must be root)' >&2\nexit 1\n"), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	target := must.Get(newNFTables(time.Now))(t)
	if err := target.apply(context.Background(), true, nil); err == nil || !strings.Contains(err.Error(), "Operation not permitted (you must be root)") {
		t.Errorf("the error is %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	c := config(t)
	c.NFTables = true
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "no program nft in PATH") {
		t.Errorf("without nft, the error is %v", err)
	}
}
