package ratelimit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func listed(t testing.TB, l *ratelimit.Limiter) []ratelimit.BanRecord {
	t.Helper()
	var bans []ratelimit.BanRecord
	for b, err := range l.Bans().All() {
		if err != nil {
			t.Fatal(err)
		}
		bans = append(bans, b)
	}
	return bans
}

func banLimiter(t testing.TB, c ratelimit.Config, rules ...ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, rules...))(t)
	return mustLimiter(t, s, c)
}

func foldedKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(match.Fold{}, fields...))(t)
	return k
}

func TestBanListRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := banLimiter(t, ratelimit.Config{},
			ratelimit.Rule{Name: "limit", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(100, time.Minute)}},
			ratelimit.Rule{Name: "pair", Key: foldedKey(t, "client", "user"), Limits: []ratelimit.Limit{per(100, time.Minute)}},
		)
		take := func(client, user string) ratelimit.Decision {
			var e match.Event
			e.SetString(match.Client, client)
			e.SetString(match.User, user)
			return l.Take(&e)
		}
		now := time.Now()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(l.Bans().Add(ratelimit.BanRecord{Rule: "limit", Key: []string{"2001:DB8::7"}, Until: now.Add(time.Hour), Reason: "noisy"}))
		must(l.Bans().Add(ratelimit.BanRecord{Rule: "pair", Key: []string{"192.0.2.1", "a\xff"}, Until: now.Add(time.Minute), Source: "manual by bob"}))
		must(l.Bans().Add(ratelimit.BanRecord{Rule: "pair", Key: []string{"192.0.2.1", "a\xff"}, Until: now.Add(time.Second)})) // shorter: changes nothing

		if d := take("2001:db8::ffff", "x"); d.Allowed || d.Rule != "limit" || !d.BannedUntil.Equal(now.Add(time.Hour)) || d.RetryAfter != time.Hour {
			t.Errorf("another address of the customer: %+v", d)
		}
		if d := take("192.0.2.1", "a\xff"); d.Allowed || d.Rule != "pair" || d.RetryAfter != time.Minute {
			t.Errorf("the pair: %+v", d)
		}
		for _, free := range [][2]string{{"2001:db8:0:1::7", "x"}, {"192.0.2.1", "a"}, {"192.0.2.2", "a\xff"}} {
			if d := take(free[0], free[1]); !d.Allowed {
				t.Errorf("%q is not banned: %+v", free, d)
			}
		}
		want := []ratelimit.BanRecord{
			{Rule: "pair", Key: []string{"192.0.2.1", "a\xff"}, Since: now, Until: now.Add(time.Minute), Source: "manual by bob"},
			{Rule: "limit", Key: []string{"2001:db8::/64"}, Since: now, Until: now.Add(time.Hour), Reason: "noisy", Source: "manual"},
		}
		if got := listed(t, l); !slices.EqualFunc(got, want, sameBan) {
			t.Errorf("listed: %+v\nwant %+v", got, want)
		}
		for range l.Bans().All() {
			break
		}
		time.Sleep(time.Minute)
		if got := listed(t, l); len(got) != 1 || got[0].Rule != "limit" {
			t.Errorf("listed after a minute: %+v", got)
		}
		if d := take("192.0.2.1", "a\xff"); !d.Allowed {
			t.Errorf("the pair after a minute: %+v", d)
		}
		for i, want := range []bool{true, false} {
			if held, err := l.Bans().Remove("limit", "2001:db8::1"); err != nil || held != want {
				t.Errorf("unban %d: %v, %v, want %v", i, held, err, want)
			}
		}
		if d := take("2001:db8::7", "x"); !d.Allowed {
			t.Errorf("after the ban was unbanned: %+v", d)
		}
	})
}

func TestBanListErrors(t *testing.T) {
	l := banLimiter(t, ratelimit.Config{}, ratelimit.Rule{
		Name: "pair", Key: foldedKey(t, "client", "user"), Limits: []ratelimit.Limit{per(1, time.Minute)},
	})
	hour := l.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		ban  ratelimit.BanRecord
		want []string
	}{
		"rule":   {ratelimit.BanRecord{Rule: "pear", Key: []string{"a", "b"}, Until: hour}, []string{`unknown rule "pear"`, `did you mean "pair"?`}},
		"key":    {ratelimit.BanRecord{Rule: "pair", Key: []string{"a"}, Until: hour}, []string{"number of key values: 1", "client, user", "must be 2"}},
		"no key": {ratelimit.BanRecord{Rule: "pair", Until: hour}, []string{"key: missing"}},
		"over":   {ratelimit.BanRecord{Rule: "pair", Key: []string{"a", "b"}, Until: l.Now().Add(-1)}, []string{"until: ", "must be after since"}},
		"passed": {ratelimit.BanRecord{Rule: "pair", Key: []string{"a", "b"}, Since: time.Unix(1, 0), Until: l.Now().Add(-1)}, []string{"until: ", "must be in the future"}},
		"long":   {ratelimit.BanRecord{Rule: "pair", Key: []string{"a", "b"}, Until: hour.Add(limit.MaxSpan)}, []string{"until: ", "must be at most 87600h0m0s from now"}},
		"allow":  {ratelimit.BanRecord{Rule: "pair", Key: []string{"10.1.2.3", "b"}, Until: hour}, []string{`"10.1.2.3"`, "on the allow list"}},
		"reason": {ratelimit.BanRecord{Rule: "pair", Key: []string{"a", "b"}, Until: hour, Reason: strings.Repeat("x", 257)}, []string{"reason: 257 bytes"}},
	} {
		wantParts(t, name, l.Bans().Add(c.ban), c.want...)
	}
	if _, err := l.Bans().Remove("pear", "a", "b"); err == nil {
		t.Error("a ban under no rule was unbanned")
	}
	if _, err := l.Bans().Remove("pair", "a"); err == nil {
		t.Error("a ban of half a key was unbanned")
	}
	if got := listed(t, l); len(got) != 0 {
		t.Errorf("%d bans after errors only", len(got))
	}
}

// TestBansMoveBetweenStores exports bans and imports them elsewhere: they are the same,
// and go on as if they had begun there.
func TestBansMoveBetweenStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []ratelimit.Rule{
			{
				Name: "sshd", Key: foldedKey(t, "client"),
				Ban: &ratelimit.Ban{After: 2, Span: time.Minute, For: time.Minute, Factor: 2, Jitter: 0.5},
			},
			{Name: "pair", Key: foldedKey(t, "client", "user"), Limits: []ratelimit.Limit{per(1, time.Minute)}},
		}
		rnd := randtest.New(t)
		seed := rnd.Uint64()
		c := ratelimit.Config{JitterSeed: seed}
		l := banLimiter(t, c, rules...)
		event := func(i int) *match.Event {
			e := new(match.Event)
			e.SetString(match.Client, fmt.Sprintf("2001:db8:%x::1", i))
			return e
		}
		for i := range 200 {
			for range rnd.IntN(8) {
				l.Take(event(i))
			}
			time.Sleep(time.Second)
		}
		must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "pair", Key: []string{"a", "b\xff"}, Until: time.Now().Add(time.Hour)}))
		other := banLimiter(t, c, rules...)
		want := listed(t, l)
		for range 2 { // once more changes nothing
			for _, b := range want {
				must.Do(t, other.Internal().RestoreBan(b))
			}
			if got := listed(t, other); len(want) < 20 || !slices.EqualFunc(got, want, sameBan) {
				t.Errorf("listed:\n%+v\nwant\n%+v", got, want)
			}
		}
		// All bans continue, end and grow in the same way in both. The events counted toward the next ban are not exported.
		time.Sleep(2 * time.Minute)
		grown := 0
		for _, b := range want[:len(want)-1] {
			var i int
			must.Get(fmt.Sscanf(b.Key[0], "2001:db8:%x::/64", &i))(t)
			var d, o ratelimit.Decision
			for range 3 {
				d, o = l.Take(event(i)), other.Take(event(i))
			}
			if !d.BannedUntil.Equal(o.BannedUntil) || d.BannedUntil.IsZero() {
				t.Errorf("key %d: banned until %v in one, %v in the other", i, d.BannedUntil, o.BannedUntil)
			}
			if d.RetryAfter >= 2*time.Minute {
				grown++
			}
		}
		if grown < 20 {
			t.Errorf("%d bans have grown", grown)
		}
	})
}

// TestRestoreBan restores bans; some have ended, some have no rule or no memory any more, and some are of clients that are
// now on the allow list.
func TestRestoreBan(t *testing.T) {
	l := banLimiter(t, ratelimit.Config{Bans: 32},
		ratelimit.Rule{Name: "r", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(1, time.Minute)}})
	now := l.Now()
	restore := func(want error, source, rule string, until time.Duration, key ...string) {
		t.Helper()
		b := ratelimit.BanRecord{Rule: rule, Key: key, Until: now.Add(until), Source: source}
		if err := l.Internal().RestoreBan(b); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", key, err, want)
		}
	}
	for i := range 30 {
		restore(nil, "rule", "r", time.Hour, fmt.Sprint("k", i))
	}
	restore(ratelimit.ErrBansFull, "rule", "r", time.Hour, "k30")
	restore(nil, "", "r", time.Hour, "by hand 1")
	restore(nil, "", "r", time.Hour, "by hand 2")
	restore(ratelimit.ErrBansFull, "", "r", time.Hour, "by hand 3")
	restore(nil, "", "r", time.Minute, "k3")
	restore(nil, "", "r", 2*time.Hour, "k4")
	restore(nil, "", "r", -time.Second, "late")
	restore(nil, "", "s", time.Hour, "k")
	restore(nil, "", "r", time.Hour, "k", "l")
	restore(nil, "", "r", time.Hour, "10.0.0.1")
	got := listed(t, l)
	if len(got) != 32 || got[len(got)-1].Key[0] != "k4" || !got[len(got)-1].Until.Equal(now.Add(2*time.Hour)) {
		t.Errorf("%d bans:\n%+v\nwant 32, the ban of k4 last", len(got), got)
	}
	far := ratelimit.BanRecord{Rule: "r", Key: []string{"k"}, Until: now.Add(limit.MaxSpan + time.Hour)}
	wantParts(t, "far", l.Internal().RestoreBan(far), "until: ", "must be at most 87600h0m0s from now")
}

// TestExtend has hits during a ban start it again, or not.
func TestExtend(t *testing.T) {
	for _, extend := range []bool{false, true} {
		l := banLimiter(t, ratelimit.Config{}, ratelimit.Rule{
			Name: "r", Key: mustKey(t, "client"),
			Ban: &ratelimit.Ban{After: 1, Span: time.Second, For: 10 * time.Second, Factor: 2, Extend: extend},
		})
		now := at(0)
		for _, step := range []struct {
			after       time.Duration // seconds since the previous row
			fixed, anew time.Duration // seconds left of the ban
		}{
			{0, 0, 0},
			{0, 10, 10},
			{3, 7, 10}, // a hit during the ban
			{6, 1, 10},
			{1, 0, 10}, // without Extend, the ban has ended
			{0, 20, 10},
			{1, 19, 10},
		} {
			now = now.Add(step.after * time.Second)
			want := step.fixed * time.Second
			if extend {
				want = step.anew * time.Second
			}
			if d := takeKeyN(l, now, "k", 1); d.RetryAfter != want || d.Allowed != (want == 0) {
				t.Errorf("extend %v, at %v: %+v, want %v left", extend, now.Unix(), d, want)
			}
			if d := takeKeyN(l, now, "k", 0); want > 0 && d.RetryAfter != want {
				t.Errorf("extend %v, at %v: looking: %+v, want %v left", extend, now.Unix(), d, want)
			}
		}
	}
}

// TestConcurrentBanVerbsDuringUpdates adds and unbans bans while events come and the rules
// change: bans of a rule that stays are never lost, and bans of a removed rule are
// deleted.
func TestConcurrentBanVerbsDuringUpdates(t *testing.T) {
	stays := ratelimit.Rule{Name: "stays", Key: mustKey(t, "client"), Limits: []ratelimit.Limit{per(5, time.Minute)}}
	goes := ratelimit.Rule{Name: "goes", Key: mustKey(t, "client"), Ban: &ratelimit.Ban{Span: time.Minute, For: time.Hour}}
	with, without := mustSet(t, stays, goes), mustSet(t, stays)
	l := mustLimiter(t, with, ratelimit.Config{})
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	hour := l.Now().Add(time.Hour)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint(g, "-", i%50)
				if err := l.Bans().Add(ratelimit.BanRecord{Rule: "stays", Key: []string{key}, Until: hour}); err != nil {
					t.Errorf("ban: %v", err)
				}
				if d := takeKey(l, key); d.Allowed {
					t.Errorf("%s is banned, and allowed: %+v", key, d)
				}
				if held, err := l.Bans().Remove("stays", key); err != nil || !held {
					t.Errorf("unban: %v, %v", held, err)
				}
				l.Bans().Add(ratelimit.BanRecord{Rule: "goes", Key: []string{key}, Until: hour}) // the rule may have been removed
				takeKey(l, fmt.Sprint("passing ", rand.Uint32()))
			}
		})
	}
	for range rounds {
		for _, s := range []*ratelimit.Set{without, with} {
			if err := l.Update(s); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	wg.Wait()
	must.Do(t, l.Update(without))
	if s := l.Stats(); s.Bans+s.Remembered != 0 {
		t.Errorf("%d bans are left: %+v", s.Bans+s.Remembered, listed(t, l))
	}
}

// A ban is in force or remembered, never both.
func TestStatsOfBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := ratelimit.Rule{Name: "flood", Key: match.MustKey("client"), Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: time.Hour, Factor: 2}}
		l := must.Get(ratelimit.New(rule))(t)
		for range 2 {
			takeKey(l, "192.0.2.1")
		}
		for _, want := range [][2]uint64{{1, 0}, {0, 1}} {
			if s := l.Stats(); s.Bans != want[0] || s.Remembered != want[1] {
				t.Errorf("bans %d, remembered %d, want %d", s.Bans, s.Remembered, want)
			}
			time.Sleep(time.Hour)
			takeKey(l, "192.0.2.2")
		}
	})
}

func ExampleBanList() {
	key, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		panic(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "per-client", Key: key, Limits: []ratelimit.Limit{{N: 60, Span: time.Minute}},
	})
	if err != nil {
		panic(err)
	}
	err = limiter.Bans().Add(ratelimit.BanRecord{
		Rule: "per-client", Key: []string{"2001:db8::7"}, Until: limiter.Now().Add(time.Hour),
		Reason: "scans for logins", Source: "manual by alice",
	})
	if err != nil {
		panic(err)
	}
	for ban := range limiter.Bans().All() {
		fmt.Println(ban.Key, ban.Reason, "-", ban.Source)
	}
	held, err := limiter.Bans().Remove("per-client", "2001:db8::8") // the same customer
	fmt.Println(held, err)
	// Output:
	// [2001:db8::/64] scans for logins - manual by alice
	// true <nil>
}

// TestBanOfNoNetwork bans and imports names that look like networks but cannot be banned as such: all are refused. A ban begun
// by a rule always has a key of an event.
func TestBanOfNoNetwork(t *testing.T) {
	l := banLimiter(t, ratelimit.Config{},
		ratelimit.Rule{Name: "limit", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(100, time.Minute)}},
		ratelimit.Rule{Name: "login", Key: foldedKey(t, "client", "user"), Limits: []ratelimit.Limit{per(100, time.Minute)}},
	)
	until := l.Now().Add(time.Hour)
	for _, x := range []struct {
		key  []string
		want string
	}{
		{[]string{"192.0.2.1/32"}, "shorter than /32; 192.0.2.1 bans 192.0.2.1"},
		{[]string{"2001:DB8::/64"}, "shorter than /64"},
		{[]string{"2001:db8::/72"}, "shorter than /64"},
		{[]string{"::ffff:192.0.2.0/120"}, "not a network of several clients"},
		{[]string{"0.0.0.0/0"}, "too many clients: must be /8 or longer"},
		{[]string{"::/0"}, "too many clients: must be /16 or longer"},
		{[]string{"10.0.0.0/9"}, "is on the allow list"},
		{[]string{"192.0.2.0/24", "ada"}, "networks cannot be banned under a rule that counts by more than the client"},
	} {
		b := ratelimit.BanRecord{Rule: "limit", Key: x.key, Until: until}
		if len(x.key) == 2 {
			b.Rule = "login"
		}
		if err := l.Bans().Add(b); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("Ban(%s): %v, want %q", x.key, err, x.want)
		}
		if err := l.Internal().RestoreBan(b); !strings.Contains(x.want, "allow") && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("RestoreBan(%s): %v", x.key, err)
		}
	}
	if n := len(listed(t, l)); n != 0 {
		t.Errorf("%d bans", n)
	}
	for i, b := range []ratelimit.BanRecord{
		{Rule: "limit", Key: []string{"2001:db8:0:1::/64"}, Until: until},
		{Rule: "limit", Key: []string{"192.0.2.0/24"}, Until: until, Source: "rule"},
	} {
		if err := l.Internal().RestoreBan(b); err != nil || len(listed(t, l)) != i+1 {
			t.Errorf("ban %d: %v", i, err)
		}
	}
}
