package enforce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// config returns the Config of an Enforcer with the rules client, of whole addresses; other; wide,
// of networks of /8; and quiet in shadow mode.
func config(t *testing.T) Config {
	t.Helper()
	folded := func(f match.Fold) match.Key {
		return must.Get(match.NewKey(f, "client"))(t)
	}
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{},
		ratelimit.Rule{Name: "wide", Key: folded(match.Fold{IPv4: 8}), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}},
		ratelimit.Rule{Name: "client", Key: folded(match.Fold{IPv6: 128}), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}},
		ratelimit.Rule{Name: "other", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}},
		ratelimit.Rule{Name: "quiet", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}, Shadow: true},
	))(t)
	return Config{Rule: set.Named, Protected: unprotected, Now: time.Now, MaxNetworks: 100_000, Log: slog.New(slog.DiscardHandler)}
}

// banOf returns a ban of a client by the rule client, or of a network by hand.
func banOf(client string, d time.Duration) api.Ban {
	source := "rule"
	if strings.Contains(client, "/") {
		source = "manual"
	}
	return api.Ban{Rule: "client", Key: api.KeyOf(client), Since: time.Now(), Until: time.Now().Add(d), Source: source}
}

func all(bans ...api.Ban) iter.Seq2[api.Ban, error] {
	return func(yield func(api.Ban, error) bool) {
		for _, b := range bans {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// A fake is a target in memory that can fail, and that others can change.
type fake struct {
	mu      sync.Mutex
	has     map[netip.Prefix]time.Time
	fail    error
	lost    error
	applied int
}

func (f *fake) apply(_ context.Context, whole bool, changes []change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if whole {
		f.has, f.lost = map[netip.Prefix]time.Time{}, nil
	}
	if f.fail != nil {
		apply(f.has, changes[:len(changes)/2]) // any part of them
		return f.fail
	}
	apply(f.has, changes)
	f.applied++
	return nil
}

func (f *fake) verify(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// inForce returns what f refuses.
func (f *fake) inForce() map[netip.Prefix]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.has)
}

// eventually waits until check finds nothing wrong.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	err := check()
	for ; err != nil && time.Now().Before(deadline); err = check() {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// batches returns how many batches f took.
func (f *fake) batches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied
}

// started runs an Enforcer with the fake target until the test ends. It must be called in a
// bubble of synctest.
func started(t *testing.T, c Config, f *fake, p pace) *Enforcer {
	t.Helper()
	e := must.Get(New(c))(t)
	e.follow("fake", f, p)
	run(t, e)
	return e
}

// run runs e until the test ends.
func run(t *testing.T, e *Enforcer) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// After any failures and foreign changes, a target has the active bans within a second of its recovery.
func TestTargetFollows(t *testing.T) {
	rng := randtest.New(t)
	for _, p := range []pace{{pause: 50 * time.Millisecond}, {whole: true}, {pieces: true, limit: 3}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			e := started(t, config(t), f, p)
			held := map[netip.Prefix]time.Time{}
			for range 200 {
				client := fmt.Sprint("192.0.2.", rng.IntN(50))
				network := netip.MustParsePrefix(client + "/32")
				if rng.IntN(3) > 0 {
					b := banOf(client, time.Duration(1+rng.IntN(60))*time.Minute)
					e.Add(&b)
					held[network] = b.Until
				} else {
					e.Remove("client", []string{client})
					delete(held, network)
				}
				f.mu.Lock()
				switch rng.IntN(20) {
				case 0:
					f.fail = errors.New("out of order")
				case 1, 2:
					f.fail = nil
				case 3:
					if !p.pieces { // which cannot be checked
						clear(f.has)
						f.lost = errors.New("flushed")
					}
				}
				f.mu.Unlock()
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			}
			f.mu.Lock()
			f.fail = nil
			f.mu.Unlock()
			time.Sleep(maxRetry + verifyEvery + time.Second)
			maps.DeleteFunc(held, func(_ netip.Prefix, until time.Time) bool { return !until.After(time.Now()) })
			if got := f.inForce(); !maps.EqualFunc(got, held, time.Time.Equal) {
				t.Errorf("%+v: refused are\n%v, want\n%v", p, got, held)
			}
			if s := e.Status(); s.Networks != len(held) || s.Targets[0].Lag != 0 || s.Targets[0].Error != "" {
				t.Errorf("%+v: the status is %+v, want %d networks", p, s, len(held))
			}
		})
	}
}

// A target that fails is logged once, and has a lag.
func TestFailingTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := config(t)
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		f := &fake{fail: errors.New("no permission")}
		e := started(t, c, f, pace{})
		b := banOf("192.0.2.1", time.Hour)
		e.Add(&b)
		time.Sleep(10 * time.Second)
		s := e.Status().Targets[0]
		if s.Name != "fake" || s.Error != "no permission" || s.Failures < 3 || s.Failures > 10 || s.Lag.Duration() != 10*time.Second {
			t.Errorf("the status is %+v", s)
		}
		f.mu.Lock()
		f.fail = nil
		f.mu.Unlock()
		time.Sleep(maxRetry)
		if s := e.Status().Targets[0]; s.Error != "" || s.Lag != 0 || len(f.inForce()) != 1 {
			t.Errorf("after its recovery, the status is %+v", s)
		}
		if text := log.String(); strings.Count(text, "enforcement fails") != 1 || strings.Count(text, "enforcement works again") != 1 {
			t.Errorf("the log is\n%s", text)
		}
	})
}

// Changes that arrive together are one batch, and a ban that runs out ends by itself.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e := started(t, config(t), f, pace{pause: 50 * time.Millisecond})
		synctest.Wait()
		for i := range 1000 {
			b := banOf(fmt.Sprintf("10.0.%d.%d", i/250, i%250), time.Minute)
			e.Add(&b)
			time.Sleep(time.Millisecond / 10)
		}
		time.Sleep(time.Second)
		if n := len(f.inForce()); n != 1000 || f.batches() > 5 {
			t.Errorf("%d of 1000 are refused, in %d batches; want at most 5", n, f.batches())
		}
		time.Sleep(time.Minute)
		if n := len(f.inForce()); n != 0 {
			t.Errorf("%d are still refused", n)
		}
	})
}

// TestDenyPace starts and ends many bans under attack: a deny-command, also one that fails, runs once in ten seconds. Ends
// of expired bans wait for a minute, ends by hand do not, and the wait does not count as lag.
func TestDenyPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e := started(t, config(t), f, (&DenyFile{Command: "x"}).pace())
		synctest.Wait()
		began := f.batches()
		for i := range 600 {
			b := banOf(fmt.Sprintf("10.0.%d.%d", i/250, i%250), 30*time.Second)
			e.Add(&b)
			if i == 0 {
				time.Sleep(11 * time.Second)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := f.batches() - began; n < 6 || n > 8 {
			t.Errorf("%d batches in 71 s, want one in 10 s", n)
		}
		time.Sleep(50 * time.Second) // the last batch was less than 20 s before, and all have run out
		if n := len(f.inForce()); n == 0 {
			t.Error("bans that have run out have ended at once")
		}
		if lag := e.Status().Targets[0].Lag; lag != 0 {
			t.Errorf("the lag is %v", lag)
		}
		time.Sleep(time.Minute)
		if n := len(f.inForce()); n != 0 {
			t.Errorf("%d are still refused", n)
		}
		b := banOf("192.0.2.1", time.Hour)
		e.Add(&b)
		time.Sleep(11 * time.Second)
		e.Remove("client", []string{"192.0.2.1"})
		time.Sleep(11 * time.Second)
		if n := len(f.inForce()); n != 0 {
			t.Error("an end by hand waits")
		}
		f.mu.Lock()
		f.fail = errors.New("it is broken")
		f.mu.Unlock()
		failures := e.Status().Targets[0].Failures
		e.Add(&b)
		time.Sleep(time.Minute)
		if n := e.Status().Targets[0].Failures - failures; n < 2 || n > 7 {
			t.Errorf("%d attempts in a minute fail, want one in 10 s or less", n)
		}
	})
}

// Bans that are not enforced are counted, and logged unless the operator chose it. A
// reload that puts an address on the allow list ends its ban.
func TestSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		safe := netip.MustParsePrefix("2001:db8::/32")
		c := config(t)
		c.MaxNetworks = 2
		c.Protected = func(network netip.Prefix) bool { return safe.Overlaps(network) }
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		f := &fake{}
		e := started(t, c, f, pace{})
		quiet := banOf("192.0.2.9", time.Hour)
		quiet.Rule = "quiet"
		unknown := quiet
		unknown.Rule = "removed"
		wide := banOf("10.0.0.0/8", time.Hour)
		wide.Rule, wide.Source = "wide", "rule"
		bans := []api.Ban{quiet, unknown, banOf("ada", time.Hour), banOf("127.0.0.1", time.Hour), wide, banOf("192.0.2.1", time.Hour), banOf("192.0.2.2", time.Hour), banOf("192.0.2.3", -time.Hour), banOf("192.0.2.4", time.Hour)}
		for i := range bans {
			e.Add(&bans[i])
		}
		want := map[string]int{"not_address": 1, "shadow": 1, "reserved": 1, "protected": 0, "too_wide": 1, "no_memory": 1}
		if s := e.Status(); s.Networks != 2 || !maps.Equal(s.Skipped, want) {
			t.Errorf("the status is %+v, want %v", s, want)
		}
		if n := strings.Count(log.String(), "is not enforced"); n != 3 {
			t.Errorf("%d lines in the log, want 3:\n%s", n, log.String())
		}
		safe = netip.MustParsePrefix("192.0.2.1/32")
		must.Do(t, e.Replace(all(bans[5])))
		synctest.Wait()
		if s := e.Status(); s.Networks != 0 || s.Skipped["protected"] != 1 || len(f.inForce()) != 0 {
			t.Errorf("an address that was put on the allow list is still refused: %+v", s)
		}
	})
}

// If the bans cannot be read, enforced bans stay.
func TestReplaceFails(t *testing.T) {
	e, err := New(config(t))
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, e.Replace(all(banOf("192.0.2.1", time.Hour))))
	broken := errors.New("unreachable")
	err = e.Replace(func(yield func(api.Ban, error) bool) { yield(api.Ban{}, broken) })
	if !errors.Is(err, broken) || e.Status().Networks != 1 {
		t.Errorf("%v, %d networks; want 1", err, e.Status().Networks)
	}
}

// With more bans than fit in memory, enforced bans stay. A network takes at most
// NetworkBytes.
func TestMaxNetworks(t *testing.T) {
	const n = 20_000
	c := config(t)
	c.MaxNetworks = n
	e := must.Get(New(c))(t)
	now := time.Now()
	ban := func(i int) *api.Ban {
		return banAt(now, "client", fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, i%250), time.Hour, "rule")
	}
	many := func(yield func(api.Ban, error) bool) {
		for i := range 3 * n {
			if !yield(*ban((i + n) % (3 * n)), nil) { // not first those that are enforced
				return
			}
		}
	}
	before := heapBytes()
	for i := range n {
		e.Add(ban(i))
	}
	if bytes := (heapBytes() - before) / n; bytes > NetworkBytes {
		t.Errorf("a network takes %d bytes, want at most %d", bytes, NetworkBytes)
	} else {
		t.Logf("a network takes %d bytes", bytes)
	}
	_, version := e.bans.after(1, 0)
	must.Do(t, e.Replace(many))
	if s := e.Status(); s.Networks != n || s.Skipped["no_memory"] != 2*n {
		t.Errorf("the status is %+v, want %d networks and %d for lack of memory", s, n, 2*n)
	}
	if changes, now := e.bans.after(version, 0); len(changes) > 0 || now != version {
		t.Errorf("%d networks changed places", len(changes))
	}
}

// heapBytes returns the bytes of all objects.
func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
