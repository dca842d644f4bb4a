package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

func TestNewFleet(t *testing.T) {
	for _, tt := range []struct {
		config FleetConfig
		want   string
	}{
		{FleetConfig{}, "Nodes and Discover: must be one of them"},
		{FleetConfig{Nodes: []string{"127.0.0.1:1"}, Discover: "lately:1"}, "Nodes and Discover: must be one of them"},
		{FleetConfig{Nodes: []string{"127.0.0.1"}}, `address "127.0.0.1": must be HOST:PORT`},
		{FleetConfig{Nodes: []string{":6380"}}, `address ":6380": must be HOST:PORT`},
		{FleetConfig{Nodes: []string{"h:0"}}, `address "h:0": must be HOST:PORT`},
		{FleetConfig{Nodes: []string{"h:redis"}}, `must be HOST:PORT`},
		{FleetConfig{Discover: "lately"}, `address "lately": must be HOST:PORT`},
		{FleetConfig{Nodes: []string{"h:1", "g:1", "h:1"}}, `Nodes: "h:1": must be there once`},
		{FleetConfig{Nodes: []string{"h:1"}, Timeout: -1}, "Timeout: -1ns: must be 0 (1s), or 10ms or more"},
		{FleetConfig{Nodes: []string{"h:1"}, Name: "a b"}, `Name: "a b": must be up to 64 visible ASCII`},
		{FleetConfig{Nodes: []string{"h:1"}, Token: "a b"}, "Token: a blank"},
		{FleetConfig{Nodes: []string{"127.0.0.1:1", "h:1"}, Token: "t"}, "sent to h:1 without encryption"},
		{FleetConfig{Discover: "h:1", Token: "t"}, "sent to h:1 without encryption"},
	} {
		if f, err := NewFleet(tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewFleet(%+v): %v, want %q", tt.config, err, tt.want)
			if err == nil {
				f.Close()
			}
		}
	}
	for _, c := range []FleetConfig{{Nodes: []string{"h:1"}, Token: "t", Insecure: true}, {Nodes: []string{"h:1"}, Token: "t", TLS: &tls.Config{}}} {
		if err := c.validateNodes(); err != nil {
			t.Error(err)
		}
	}
	if name := defaultName(); len(name) > maxName || strings.ContainsFunc(name, notVisible) {
		t.Errorf("the name of this process is %q", name)
	}
}

// A server answers what a limiter in this process would have returned.
func TestFleetDecisions(t *testing.T) {
	s := startServer(t, listen.Config{})
	f := mustFleet(t, FleetConfig{Nodes: []string{s.addr}, Name: "clerk-7"})
	ctx := t.Context()
	want := func(got ratelimit.Decision, err error, want string) {
		t.Helper()
		text := fmt.Sprintf("%v %s limit %d remaining %d retry %v reset %v delay %v", got.Allowed, got.Rule, got.Limit, got.Remaining,
			got.RetryAfter.Round(time.Minute), got.ResetAfter.Round(time.Minute), got.Delay.Round(time.Minute))
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
	d, err := f.Take(ctx, "login", 0, "ada")
	want(d, err, "true login limit 100 remaining 99 retry 0s reset 1h0m0s delay 0s")
	d, err = f.Take(ctx, "login", 9, "ada")
	want(d, err, "true login limit 100 remaining 90 retry 0s reset 1h0m0s delay 0s")
	d, err = f.Take(ctx, "pair", 1, "192.0.2.1", "ada\n")
	want(d, err, "true pair limit 2 remaining 1 retry 0s reset 1h0m0s delay 0s")
	d, err = f.Take(ctx, "pair", 2, "192.0.2.1", "ada\n")
	want(d, err, "false pair limit 2 remaining 1 retry 1h0m0s reset 1h0m0s delay 0s")
	d, err = f.Take(ctx, "pair", 3, "192.0.2.1", "ada")
	if d.RetryAfter != ratelimit.Never {
		t.Errorf("3 of 2 may be retried after %v, %v", d.RetryAfter, err)
	}
	d, err = f.TakeLimit(ctx, "plan", 4, 3, "ada")
	want(d, err, "true plan limit 4 remaining 1 retry 0s reset 1h0m0s delay 0s")
	if r, err := f.ReserveLimit(ctx, "plan", 5, 2, 0, "ada"); err != nil || !r.Decision.Allowed || r.Decision.Limit != 5 {
		t.Errorf("%+v, %v", r, err)
	} else if _, err := f.Settle(ctx, r, 0); err != nil {
		t.Error(err)
	}
	d, err = f.TakeLimit(ctx, "plan", 0, 1, "ada")
	want(d, err, "false plan limit 1 remaining 0 retry 1h0m0s reset 1h0m0s delay 0s")
	for range 3 {
		d, err = f.Take(ctx, "queue", 1, "ada")
	}
	want(d, err, "true queue limit 3 remaining 0 retry 0s reset 3m0s delay 2m0s")
	d, err = f.Throttle(ctx, "ada", 1, 30, time.Hour, 1)
	want(d, err, "true  limit 2 remaining 1 retry 0s reset 2m0s delay 0s")
	d, err = f.Throttle(ctx, "ada", 1, 30, time.Hour, 2)
	want(d, err, "false  limit 2 remaining 1 retry 2m0s reset 2m0s delay 0s")
	d, err = f.Throttle(ctx, "ada", 1, 30, time.Hour, 3)
	if d.RetryAfter != ratelimit.Never {
		t.Errorf("3 of 2 may be retried after %v, %v", d.RetryAfter, err)
	}
	d, err = f.Throttle(ctx, "a day", 0, 1, 1500*time.Millisecond, 1)
	if d.ResetAfter != 2*time.Second {
		t.Errorf("a period of 1.5 s is one of %v, %v", d.ResetAfter, err)
	}
	d, err = f.Take(ctx, "logn", 1, "ada")
	want(d, err, `NORULE unknown rule "logn": did you mean "login"?`)
	d, err = f.Take(ctx, "pair", 1, "192.0.2.1", "a\tb")
	want(d, err, `key: "a\tb": must not have a tab, which separates the values`)
	d, err = f.Take(ctx, "pair", 1)
	want(d, err, "key: missing: must be a value for each field of the rule's key")
	if err := errors.Join(f.Add(ctx, "requests", 0, "192.0.2.1"), f.Add(ctx, "requests", 42, "192.0.2.1")); err != nil {
		t.Error(err)
	}
	if top, err := s.Top("requests", 1, 0, keys.Filter{}); err != nil || len(top) != 1 || top[0].Lo != 42 {
		t.Errorf("%v, %v; want 42", top, err)
	}
	if n := f.Nodes(); len(n) != 1 || !n[0].Up || n[0].Err != nil || n[0].Addr != s.addr {
		t.Errorf("nodes are %+v", n)
	}
}

// An amount of 0 is neither counted as 1 nor sent: no server is there to answer.
func TestZeroIsNotSent(t *testing.T) {
	c := must.Get(New("unix:/nowhere/lately.sock", Config{}))(t)
	f := mustFleet(t, FleetConfig{Nodes: []string{"unix:/nowhere/lately.sock"}})
	ctx := t.Context()
	for n, want := range []bool{false, true} {
		n := uint64(n)
		var errs [8]error
		_, errs[0] = c.Refund(ctx, "login", n, "ada")
		_, errs[1] = c.Release(ctx, "login", n, "ada")
		_, errs[2] = f.Refund(ctx, "login", n, "ada")
		_, errs[3] = f.Release(ctx, "login", n, "ada")
		copy(errs[4:], []error{c.Add(ctx, "hits", n, "ada"), c.Charge(ctx, "login", n, "ada"), f.Add(ctx, "hits", n, "ada"), f.Charge(ctx, "login", n, "ada")})
		for i, err := range errs {
			if (err != nil) != want {
				t.Errorf("call %d with %d: %v", i, n, err)
			}
		}
	}
}

// A Fleet peeks at and gives back to the node that counts the key, as a Client does.
func TestFleetGivesBack(t *testing.T) {
	_, addrs := startServers(t, 3)
	f := mustFleet(t, FleetConfig{Nodes: addrs})
	ctx := t.Context()
	for i := range addrs {
		user := keysOf("work", addrs, i, 1)[0]
		left := func(verb func(context.Context, string, uint64, ...string) (ratelimit.Decision, error), rule string, allowed bool, want uint64, key ...string) {
			t.Helper()
			if d, err := verb(ctx, rule, 1, key...); err != nil || d.Allowed != allowed || d.Remaining != want || d.Rule != rule {
				t.Errorf("%+v, %v; want %d left", d, err, want)
			}
		}
		gave := func(verb func(context.Context, string, uint64, ...string) (uint64, error), rule string, n, want uint64, key ...string) {
			t.Helper()
			if got, err := verb(ctx, rule, n, key...); err != nil || got != want {
				t.Errorf("%d given back, %v; want %d", got, err, want)
			}
		}
		for range 2 {
			left(f.Peek, "pair", true, 1, "192.0.2.1", user)
		}
		left(f.Take, "pair", true, 1, "192.0.2.1", user)
		left(f.Take, "pair", true, 0, "192.0.2.1", user)
		left(f.Peek, "pair", false, 0, "192.0.2.1", user)
		gave(f.Refund, "pair", 1, 1, "192.0.2.1", user)
		left(f.Peek, "pair", true, 0, "192.0.2.1", user)
		gave(f.Refund, "pair", 5, 1, "192.0.2.1", user)
		gave(f.Refund, "pair", 1, 0, "192.0.2.1", user)

		left(f.Take, "work", true, 0, user)
		left(f.Take, "work", false, 0, user)
		gave(f.Release, "work", 1, 1, user)
		gave(f.Release, "work", 1, 0, user)
		left(f.Take, "work", true, 0, user)
	}
	for what, call := range map[string]func() error{
		"an unknown rule": func() error { _, err := f.Refund(ctx, "logn", 1, "ada"); return err },
		"not in flight":   func() error { _, err := f.Release(ctx, "login", 1, "ada"); return err },
	} {
		if _, ok := errors.AsType[*Error](call()); !ok {
			t.Errorf("%s: %v, want an *Error", what, call())
		}
	}
	if _, err := f.Release(ctx, "work", 1); err == nil || !strings.Contains(err.Error(), "key: missing") {
		t.Errorf("a Release without a key: %v", err)
	}
}

// tokensOf returns the tokens of a token file with these lines.
func tokensOf(t *testing.T, lines string) func() *access.Tokens {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	must.Do(t, os.WriteFile(path, []byte(lines), 0o600))
	tokens := must.Get(access.Load(path))(t)
	return func() *access.Tokens { return tokens }
}

func TestFleetToken(t *testing.T) {
	const token = "cccccccccccccccccccccccccccccccc-check"
	s := startServer(t, listen.Config{Tokens: tokensOf(t, "check "+token+" svc\n")})
	f := mustFleet(t, FleetConfig{Nodes: []string{s.addr}, Token: token})
	if d, err := f.Take(t.Context(), "login", 1, "ada"); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	for token, code := range map[string]api.Code{"": api.NoAuth, "another": api.WrongPass} {
		f := mustFleet(t, FleetConfig{Nodes: []string{s.addr}, Token: token})
		_, err := f.Take(t.Context(), "login", 1, "ada")
		if refusal, ok := errors.AsType[*Error](err); !ok || refusal.Code != code || !errors.Is(err, ErrNoNode) {
			t.Errorf("with token %q: %v, want %s", token, err, code)
		}
	}
	open := startServer(t, listen.Config{})
	f = mustFleet(t, FleetConfig{Nodes: []string{open.addr}, Token: token})
	if _, err := f.Take(t.Context(), "login", 1, "ada"); !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "this server has no tokens") {
		t.Errorf("with a token for a server without tokens: %v", err)
	}
}

// A Fleet that detects hot keys needs the role check, and no more. With read it receives hot
// keys, but its reports are refused.
func TestFleetTokenHot(t *testing.T) {
	const check, read = "cccccccccccccccccccccccccccccccc-check", "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr-read"
	s := startServer(t, listen.Config{Tokens: tokensOf(t, "check "+check+" svc\nread "+read+" eyes\n")})
	services := startProcesses(t, 4, FleetConfig{Nodes: []string{s.addr}, Token: check})
	eyes := startProcesses(t, 1, FleetConfig{Nodes: []string{s.addr}, Token: read})[0]
	heat(t, services, "/a")
	heat(t, []*process{eyes}, "/a")
	until(t, "the key is hot in all processes", func() bool {
		return all(append(services, eyes), func(p *process) bool { return p.cache.IsHot("/a") })
	})
	if err := services[0].f.Changed(t.Context(), "product", "/a"); err != nil {
		t.Error(err)
	}
	refusal, _ := errors.AsType[*Error](eyes.f.Changed(t.Context(), "product", "/a"))
	if refusal == nil || refusal.Code != api.NoPerm {
		t.Errorf("Changed with the role read: %v, want NOPERM", refusal)
	}
	if got := settled(t, eyes.f); got.Dropped != got.Added || got.Err == nil || !strings.Contains(got.Err.Error(), "NOPERM") {
		t.Errorf("with the role read: %+v, want all dropped, and NOPERM", got)
	}
	if got := settled(t, services[0].f); got.Sent != got.Added || got.Err != nil {
		t.Errorf("with the role check: %+v, want all sent", got)
	}
}

func TestFleetTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	s := startServer(t, listen.Config{TLS: &tls.Config{Certificates: web.TLS.Certificates}})
	f := mustFleet(t, FleetConfig{Nodes: []string{s.addr}, TLS: &tls.Config{RootCAs: roots}})
	if d, err := f.Take(t.Context(), "login", 1, "ada"); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	stranger := mustFleet(t, FleetConfig{Nodes: []string{s.addr}, TLS: &tls.Config{}})
	if _, err := stranger.Take(t.Context(), "login", 1, "ada"); !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of an unknown authority: %v", err)
	}
}

// Answers reach their callers, with many callers on one connection.
func TestFleetPipelines(t *testing.T) {
	s, f := newServed(t)
	const callers, each = 64, 100
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				d, err := f.Take(t.Context(), "login", 1, fmt.Sprint("user-", c))
				if err != nil || d.Remaining != 99-uint64(i) {
					t.Errorf("caller %d: event %d leaves %d, %v", c, i+1, d.Remaining, err)
					return
				}
				if _, err := f.Take(t.Context(), "nosuch", 1, "x"); err == nil {
					t.Error("an unknown rule was answered")
				}
			}
		})
	}
	wg.Wait()
	if n := s.decided(); n != callers*each {
		t.Errorf("%d decisions, want %d", n, callers*each)
	}
}

// A caller whose context ends does not wait, and no other caller gets its answer.
func TestFleetContextEnds(t *testing.T) {
	s, f := newServed(t)
	must.Get(f.Take(t.Context(), "login", 1, "first"))(t)
	s.freeze()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			defer cancel()
			if _, err := f.Take(ctx, "login", uint64(i), "ada"); !errors.Is(err, ErrUnanswered) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	wg.Wait()
	s.thaw()
	for i := range 20 {
		if d, err := f.Take(t.Context(), "login", 1, "eve"); err != nil || d.Remaining != 99-uint64(i) {
			t.Fatalf("event %d leaves %d, %v", i+1, d.Remaining, err)
		}
	}
	if n := s.decided(); n != 41 {
		t.Errorf("%d decisions, want one for each of 41 events", n)
	}
}

// A node that is only paused is down in time. Its keys are counted by others, and return.
func TestFleetNodeStalls(t *testing.T) {
	servers, addrs := startServers(t, 3)
	f := mustFleet(t, FleetConfig{Nodes: addrs, Timeout: 200 * time.Millisecond})
	keys := keysOf("many", addrs, 1, 20)
	// taken takes all keys until servers have decided that many more events. On a slow machine other nodes may seem paused,
	// too.
	taken := func(what string, by ...*testServer) {
		t.Helper()
		sum := func() (n uint64) {
			for _, s := range by {
				n += s.decided()
			}
			return n
		}
		from := sum()
		until(t, what, func() bool {
			for _, k := range keys {
				if _, err := f.Take(t.Context(), "many", 1, k); err != nil && !errors.Is(err, ErrUnanswered) && !errors.Is(err, ErrNoNode) {
					t.Fatal(err)
				}
			}
			return sum() >= from+20
		})
	}
	taken("the node decides for its keys", servers[1])
	servers[1].freeze()
	until(t, "the paused node is down", func() bool { return !f.isUp(addrs[1]) })
	taken("the others decide for its keys", servers[0], servers[2])
	servers[1].thaw()
	until(t, "the node is up again", func() bool { return f.isUp(addrs[1]) })
	taken("the keys return", servers[1])
}

// A node is killed under load: answered requests were counted once, unanswered ones at most once, and the keys of other
// nodes are not affected.
func TestFleetNodeIsKilled(t *testing.T) {
	servers, addrs := startServers(t, 3)
	f := mustFleet(t, FleetConfig{Nodes: addrs})
	const callers = 24
	var counted, unanswered, failed [3]atomic.Uint64 // by the node of the key
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for c := range callers {
		home := c % 3
		key := keysOf("many", addrs, home, c/3+1)[c/3]
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch _, err := f.Take(t.Context(), "many", 1, key); {
				case err == nil:
					counted[home].Add(1)
				case errors.Is(err, ErrUnanswered):
					unanswered[home].Add(1)
				default:
					failed[home].Add(1)
				}
			}
		})
	}
	enough := func(more uint64) {
		from := counted[1].Load()
		until(t, "more events", func() bool { return counted[1].Load() > from+more })
	}
	for range 3 {
		enough(200)
		servers[1].kill()
		until(t, "the killed node is down", func() bool { return !f.isUp(addrs[1]) })
		enough(200)
		servers[1].revive()
		until(t, "the node is up again", func() bool { return f.isUp(addrs[1]) })
	}
	enough(200)
	close(stop)
	wg.Wait()
	var sent, lost, total uint64
	for i, s := range servers {
		sent, lost, total = sent+counted[i].Load(), lost+unanswered[i].Load(), total+s.decided()
		if i != 1 && unanswered[i].Load()+failed[i].Load() != 0 {
			t.Errorf("keys of node %d: %d without answer, %d failed; want 0, it was up", i, unanswered[i].Load(), failed[i].Load())
		}
	}
	t.Logf("%d answered, %d without answer, %d not sent; the servers have %d", sent, lost, failed[1].Load(), total)
	if total < sent || total > sent+lost {
		t.Errorf("the servers have counted %d events, want %d to %d", total, sent, sent+lost)
	}
}

// When no node can be reached, the error gives the reason, and it is not ErrUnanswered.
func TestFleetNoNode(t *testing.T) {
	s := startServer(t, listen.Config{})
	s.kill()
	f := mustFleet(t, FleetConfig{Nodes: []string{s.addr}})
	_, err := f.Take(t.Context(), "login", 1, "ada")
	if !errors.Is(err, ErrNoNode) || errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), s.addr) {
		t.Errorf("the error is %v", err)
	}
	if n := f.Nodes(); n[0].Up || n[0].Err == nil {
		t.Errorf("nodes are %+v", n)
	}
	web := httptest.NewServer(nil)
	defer web.Close()
	f = mustFleet(t, FleetConfig{Nodes: []string{web.Listener.Addr().String()}})
	if _, err := f.Take(t.Context(), "login", 1, "ada"); !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "Protocol error") {
		t.Errorf("a web server: %v", err)
	}
	f.Close()
	if _, err := f.Take(t.Context(), "login", 1, "ada"); !errors.Is(err, errClosed) {
		t.Errorf("a closed Fleet: %v", err)
	}
}

// Commands that wait when the Fleet is closed fail.
func TestFleetCloseEndsCommands(t *testing.T) {
	s, f := newServed(t)
	must.Get(f.Take(t.Context(), "login", 1, "ada"))(t)
	s.freeze()
	ended := make(chan error)
	for range 10 {
		go func() {
			_, err := f.Take(t.Context(), "login", 1, "ada")
			ended <- err
		}()
	}
	until(t, "all are sent", func() bool {
		sent, answers := (*f.members.list.Load())[0].commands.live.Load().counts()
		return sent-answers == 10
	})
	f.Close()
	for range 10 {
		if err := <-ended; !errors.Is(err, ErrUnanswered) && !errors.Is(err, ErrNoNode) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestFleetTakeDoesNotAllocate(t *testing.T) {
	_, f := newServed(t)
	ctx := t.Context()
	take := func() {
		must.Get(f.Take(ctx, "many", 1, "ada"))(t)
	}
	for range 1000 {
		take()
	}
	if n := testing.AllocsPerRun(1000, take); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFleetTake(b *testing.B) {
	s := startServer(b, listen.Config{})
	f := mustFleet(b, FleetConfig{Nodes: []string{s.upstream}})
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			b.ReportAllocs()
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for i := c; i < b.N; i += callers {
						if _, err := f.Take(b.Context(), "many", 1, "192.0.2.1"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
