package access_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/server/access"
)

func newGuard(t *testing.T, c access.GuardConfig) *access.Guard {
	t.Helper()
	g, err := access.NewGuard(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// refused returns how long to wait, or 0.
func refused(err error) time.Duration {
	if r, ok := errors.AsType[*access.RefusedError](err); ok {
		return r.RetryAfter
	}
	return 0
}

// TestGuard tries tokens: nine are unknown, the tenth has the peer refused, for a
// minute, with any token; others are not touched.
func TestGuard(t *testing.T) {
	for _, c := range []struct{ name, peer, same, other string }{
		{"IPv4", "192.0.2.7", "::ffff:192.0.2.7", "192.0.2.8"},
		{"IPv6", "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"},
		{"zone", "fe80::1%eth0", "fe80::2%eth1", "192.0.2.8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens := parse(t, "admin "+secret("a"))
				g := newGuard(t, access.GuardConfig{})
				peer, same, other := netip.MustParseAddr(c.peer), netip.MustParseAddr(c.same), netip.MustParseAddr(c.other)
				good := func(peer netip.Addr) error {
					who, err := g.Authenticate(tokens, secret("a"), peer)
					if (err == nil) != (who == access.Identity{Role: access.Admin, Name: "admin"}) {
						t.Errorf("%v with %v", who, err)
					}
					return err
				}
				bad := func(peer netip.Addr) error {
					who, err := g.Authenticate(tokens, secret("b"), peer)
					if err == nil || who != (access.Identity{}) {
						t.Errorf("%v with %v", who, err)
					}
					return err
				}
				for i := range 9 {
					if err := bad(peer); !errors.Is(err, access.ErrUnknown) {
						t.Errorf("failure %d: %v", i+1, err)
					}
					time.Sleep(time.Second)
					if err := good(same); err != nil { // does not make up for it
						t.Errorf("a good token after %d failures: %v", i+1, err)
					}
				}
				if d := refused(bad(same)); d != time.Minute {
					t.Errorf("refused for %v, want 1m", d)
				}
				time.Sleep(59 * time.Second)
				if d := refused(good(peer)); d != time.Second {
					t.Errorf("a good token: refused for %v, want 1s", d)
				}
				if d := refused(bad(peer)); d != time.Second {
					t.Errorf("failures while refused made it %v", d)
				}
				if err := good(other); err != nil {
					t.Errorf("another peer: %v", err)
				}
				time.Sleep(time.Second)
				if err := good(peer); err != nil {
					t.Errorf("after a minute: %v", err)
				}
				if err := bad(peer); !errors.Is(err, access.ErrUnknown) {
					t.Errorf("after a minute: %v", err)
				}
			})
		})
	}
}

// TestGuardForgets fails nine times a minute for an hour.
func TestGuardForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, access.GuardConfig{})
		for range 60 {
			for range 9 {
				if _, err := g.Authenticate(nil, "x", netip.MustParseAddr("192.0.2.7")); !errors.Is(err, access.ErrUnknown) {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestGuardAtOnce tries a thousand tokens at once: nine are told to be unknown.
func TestGuardAtOnce(t *testing.T) {
	g := newGuard(t, access.GuardConfig{Span: time.Hour, For: time.Hour})
	var unknown, out atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 125 {
				_, err := g.Authenticate(nil, fmt.Sprint("token ", i), netip.MustParseAddr("192.0.2.7"))
				switch {
				case errors.Is(err, access.ErrUnknown):
					unknown.Add(1)
				case refused(err) > 0:
					out.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if unknown.Load() != 9 || out.Load() != 991 {
		t.Errorf("%d unknown, %d refused; want 9 and 991", unknown.Load(), out.Load())
	}
}

// TestGuardWithoutAddress is for sockets of the file system.
func TestGuardWithoutAddress(t *testing.T) {
	g := newGuard(t, access.GuardConfig{Failures: 1})
	tokens := parse(t, "check "+secret("c"))
	for range 20 {
		if _, err := g.Authenticate(tokens, "x", netip.Addr{}); !errors.Is(err, access.ErrUnknown) {
			t.Error(err)
		}
	}
	if who, err := g.Authenticate(tokens, secret("c"), netip.Addr{}); err != nil || who.Role != access.Check {
		t.Error(who, err)
	}
}

// TestGuardManyPeers has more peers refused than there is room for: memory is
// bounded, and one of them that goes on is still refused.
func TestGuardManyPeers(t *testing.T) {
	g := newGuard(t, access.GuardConfig{Failures: 2, Span: time.Hour, For: time.Hour})
	for i := range 100_000 {
		peer := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		for range 2 {
			_, _ = g.Authenticate(nil, "x", peer)
		}
	}
	last := netip.AddrFrom4([4]byte{10, 1, 0, 1})
	for range 3 {
		if _, err := g.Authenticate(nil, "x", last); refused(err) == 0 {
			t.Errorf("a peer without room: %v", err)
		}
	}
}

func TestGuardConfig(t *testing.T) {
	for _, c := range []struct {
		config access.GuardConfig
		want   string
	}{
		{access.GuardConfig{Failures: -1}, "Failures is -1; allowed is 1 to 65536, or 0 for 10"},
		{access.GuardConfig{Failures: 1 << 17}, "Failures is 131072; allowed is 1 to 65536"},
		{access.GuardConfig{Span: -time.Second}, "span is -1s"},
		{access.GuardConfig{For: time.Nanosecond}, "duration is 1ns"},
	} {
		if _, err := access.NewGuard(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.config, err, c.want)
		}
	}
	if got := (&access.RefusedError{RetryAfter: 1500 * time.Millisecond}).Error(); !strings.Contains(got, "in 2 s") {
		t.Error(got)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	tokens, err := access.Parse(strings.NewReader("check "+secret("c")), "tokens")
	if err != nil {
		b.Fatal(err)
	}
	g, err := access.NewGuard(access.GuardConfig{})
	if err != nil {
		b.Fatal(err)
	}
	good, peer := secret("c"), netip.MustParseAddr("192.0.2.7")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Authenticate(tokens, good, peer); err != nil {
			b.Fatal(err)
		}
	}
}
