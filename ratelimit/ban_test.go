package ratelimit_test

import (
	"math"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

func TestBanErrorsNameRange(t *testing.T) {
	const spans = "must be whole milliseconds from 1ms to 87600h"
	steps := []time.Duration{time.Minute, time.Hour}
	for name, c := range map[string]struct {
		spoil func(*ratelimit.Ban)
		want  []string
	}{
		"after":        {func(b *ratelimit.Ban) { b.After = limit.MaxLog + 1 }, []string{"ban.after: 65536", "at most 65535"}},
		"cause":        {func(b *ratelimit.Ban) { b.Of = 3 }, []string{"ban.after: cause 3", "must be Hits, Refusals or Distinct"}},
		"span":         {func(b *ratelimit.Ban) { b.Span = 0 }, []string{"ban.after: span 0s", spans}},
		"for":          {func(b *ratelimit.Ban) { b.For = -time.Hour }, []string{"ban.for: -1h", spans}},
		"for too long": {func(b *ratelimit.Ban) { b.For = 2 * limit.MaxSpan }, []string{"ban.for: 175200h", spans}},
		"factor":       {func(b *ratelimit.Ban) { b.Factor = 0.99 }, []string{"ban.factor: 0.99", "from 1 to 1000"}},
		"factor high":  {func(b *ratelimit.Ban) { b.Factor = 1001 }, []string{"ban.factor: 1001", "from 1 to 1000"}},
		"factor NaN":   {func(b *ratelimit.Ban) { b.Factor = math.NaN() }, []string{"ban.factor: NaN", "from 1 to 1000"}},
		"factor below": {func(b *ratelimit.Ban) { b.Factor = -1 }, []string{"ban.factor: -1", "from 1 to 1000"}},
		"max":          {func(b *ratelimit.Ban) { b.Max = time.Microsecond }, []string{"ban.max: 1µs", spans}},
		"max short":    {func(b *ratelimit.Ban) { b.Max = time.Second }, []string{"ban.max: 1s", "at least the length of the first ban"}},
		"no for":       {func(b *ratelimit.Ban) { b.For = 0 }, []string{"ban.for: 0s", spans}},
		"jitter":       {func(b *ratelimit.Ban) { b.Jitter = 1.01 }, []string{"ban.jitter: 1.01", "a share from 0 to 1"}},
		"jitter below": {func(b *ratelimit.Ban) { b.Jitter = -0.1 }, []string{"ban.jitter: -0.1", "a share from 0 to 1"}},
		"jitter NaN":   {func(b *ratelimit.Ban) { b.Jitter = math.NaN() }, []string{"ban.jitter: NaN", "a share from 0 to 1"}},
		"jitter max": {
			func(b *ratelimit.Ban) { b.Jitter, b.Max = 0.5, 14*time.Minute },
			[]string{"ban.jitter: 0.5", "must be less", "longer than the longest, 14m"},
		},
		"jitter span": {
			func(b *ratelimit.Ban) { b.Jitter, b.For, b.Max = 1, limit.MaxSpan, 0 },
			[]string{"ban.jitter: 1", "must be less", "longer than the longest, 87600h"},
		},
		"both":      {func(b *ratelimit.Ban) { b.Steps = steps }, []string{"ban.factor: 2", "must be left out with a list"}},
		"steps for": {func(b *ratelimit.Ban) { b.Steps, b.Factor = steps, 0 }, []string{"ban.for: 10m", "must be 0 with steps", "the first of them, 1m"}},
		"steps max": {
			func(b *ratelimit.Ban) { b.Steps, b.Factor, b.For, b.Max = steps, 0, 0, time.Second },
			[]string{"ban.max: 1s", "at least the length of the first ban"},
		},
		"step": {
			func(b *ratelimit.Ban) { b.Steps, b.Factor, b.For = []time.Duration{time.Minute, 1}, 0, 0 },
			[]string{"ban.for[1]: 1ns", spans},
		},
		"many steps": {
			func(b *ratelimit.Ban) { b.Steps, b.Factor, b.For = make([]time.Duration, 65), 0, 0 },
			[]string{"ban.for: 65 elements", "must be at most 64"},
		},
		"memory": {func(b *ratelimit.Ban) { b.Remember = 1 }, []string{"ban.remember: 1ns", spans}},
	} {
		b := ratelimit.Ban{After: 4, Span: time.Minute, For: 10 * time.Minute, Factor: 2, Max: time.Hour, Remember: time.Hour}
		must.Do(t, banError(t, b))
		c.spoil(&b)
		wantParts(t, name, banError(t, b), c.want...)
	}
}

// banError returns the error of a set with the ban.
func banError(t testing.TB, b ratelimit.Ban) error {
	r := goodRule(t)
	r.Ban = &b
	return newSetError(ratelimit.SetConfig{}, r)
}

func TestBanDuration(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		ban     ratelimit.Ban
		earlier int
		want    time.Duration
	}{
		{ratelimit.Ban{For: 3 * s}, 0, 3 * s},
		{ratelimit.Ban{For: 3 * s}, 1000, 3 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 1}, math.MaxInt, 3 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2}, 0, 3 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2}, 5, 96 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2, Max: 20 * s}, 2, 12 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2, Max: 20 * s}, 3, 20 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2, Max: 20 * s}, math.MaxInt, 20 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2}, math.MaxInt, limit.MaxSpan},
		{ratelimit.Ban{For: limit.MaxSpan, Factor: 1000}, 1, limit.MaxSpan},
		{ratelimit.Ban{For: 2 * s, Factor: 1.5}, 2, 4500 * time.Millisecond},
		{ratelimit.Ban{For: 3 * s, Factor: 1.13}, 1, 3390 * time.Millisecond}, // as float64, a hair less
		{ratelimit.Ban{For: time.Millisecond, Factor: 1.2}, 1, time.Millisecond},
		{ratelimit.Ban{For: time.Millisecond, Factor: 1.2}, 4, 2 * time.Millisecond},
		{ratelimit.Ban{For: 3 * s, Factor: 2}, -1, 3 * s},
		{ratelimit.Ban{Steps: []time.Duration{s, 5 * s, 2 * s}}, 0, s},
		{ratelimit.Ban{Steps: []time.Duration{s, 5 * s, 2 * s}}, 1, 5 * s},
		{ratelimit.Ban{Steps: []time.Duration{s, 5 * s, 2 * s}}, 2, 2 * s},
		{ratelimit.Ban{Steps: []time.Duration{s, 5 * s, 2 * s}}, math.MaxInt, 2 * s},
		{ratelimit.Ban{Steps: []time.Duration{s, 5 * s, 2 * s}, Max: 3 * s}, 1, 3 * s},
		{ratelimit.Ban{Steps: []time.Duration{s}, For: s}, 9, s},
		{ratelimit.Ban{For: 3 * s, Jitter: 0.5}, 0, 3 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2, Max: 30 * s, Jitter: 0.5}, 2, 12 * s},
		{ratelimit.Ban{For: 3 * s, Factor: 2, Max: 30 * s, Jitter: 0.5}, 3, 20 * s}, // with jitter, up to 30
	} {
		if got := c.ban.Duration(c.earlier); got != c.want {
			t.Errorf("the ban after %d earlier ones of %+v lasts %v, want %v", c.earlier, c.ban, got, c.want)
		}
	}
}

func TestCauseNames(t *testing.T) {
	if h, r := ratelimit.Hits.String(), ratelimit.Refusals.String(); h != "hits" || r != "refusals" {
		t.Errorf("causes are %q and %q", h, r)
	}
}

// TestFail2banDefault is fail2ban's own default: five failures within ten
// minutes ban for ten minutes. Its maxretry 5 is After 4.
func TestFail2banDefault(t *testing.T) {
	l := mustLimiter(t, mustSet(t, ratelimit.Rule{
		Name: "sshd", Key: mustKey(t, "client"),
		Ban: &ratelimit.Ban{After: 4, Span: 10 * time.Minute, For: 10 * time.Minute},
	}), ratelimit.Config{})
	minute := func(m float64) time.Time { return at(int64(m * 60_000)) }
	for i, step := range []struct {
		at      float64 // minutes
		allowed bool
		until   float64
	}{
		{0, true, 0},
		{2, true, 0},
		{4, true, 0},
		{6, true, 0},
		{10, true, 0},   // the fifth, but the one at 0 has just left (0, 10]
		{11, false, 21}, // 2, 4, 6, 10 and 11: banned
		{20, false, 21}, // the end does not move
		{21, true, 0},   // over, and its counts are deleted
		{21.1, true, 0}, // nothing of 20 was recorded
		{21.2, true, 0}, //
		{21.3, true, 0}, // four
		{21.4, false, 31.4},
	} {
		d := takeKeyN(l, minute(step.at), "k", 1)
		if d.Allowed != step.allowed {
			t.Errorf("step %d: %+v, want allowed: %v", i, d, step.allowed)
		}
		if !d.Allowed && (!d.BannedUntil.Equal(minute(step.until)) || d.RetryAfter != minute(step.until).Sub(minute(step.at))) {
			t.Errorf("step %d: banned until %v for another %v, want %v", i, d.BannedUntil, d.RetryAfter, minute(step.until))
		}
		if d.Allowed && !d.BannedUntil.IsZero() {
			t.Errorf("step %d: allowed, but banned until %v", i, d.BannedUntil)
		}
	}
}

// TestEscalation bans a key again and again: each ban is longer than the last, up to the longest, until the key has had no
// ban for long enough.
func TestEscalation(t *testing.T) {
	l := mustLimiter(t, mustSet(t, ratelimit.Rule{
		Name: "r", Key: mustKey(t, "client"),
		Ban: &ratelimit.Ban{Span: time.Second, For: time.Minute, Factor: 2, Max: 10 * time.Minute, Remember: time.Hour},
	}), ratelimit.Config{})
	now := at(0)
	for i, step := range []struct {
		pause time.Duration // since the end of the ban before
		want  time.Duration
	}{
		{0, time.Minute},
		{0, 2 * time.Minute},
		{time.Hour, 4 * time.Minute}, // just remembered
		{time.Second, 8 * time.Minute},
		{0, 10 * time.Minute},
		{0, 10 * time.Minute},
		{time.Hour + 1, time.Minute}, // no longer remembered
		{0, 2 * time.Minute},
	} {
		now = now.Add(step.pause)
		d := takeKeyN(l, now, "k", 1)
		if got := d.BannedUntil.Sub(now); d.Allowed || got != step.want {
			t.Errorf("ban %d lasts %v, want %v", i+1, got, step.want)
		}
		now = d.BannedUntil
	}
}

// TestWaitDuringBan has limits free places while a ban holds, each nanosecond
// around that moment: the client has to wait for the ban, and for no more.
func TestWaitDuringBan(t *testing.T) {
	for _, n := range []uint64{1, 100} {
		own := limitRule(t, "own", per(n, time.Millisecond))
		own.Ban = &ratelimit.Ban{After: n, Span: time.Second, For: time.Minute}
		l := mustLimiter(t, mustSet(t, own, limitRule(t, "other", per(n, time.Millisecond))), ratelimit.Config{})
		for range n + 1 {
			takeKeyN(l, at(0), "k", 1)
		}
		for ns := range int64(1_000_000 + 100_000) {
			if ns > 10 && ns < 999_990 {
				continue
			}
			d := takeKeyN(l, time.Unix(0, ns), "k", 1)
			if want := time.Minute - time.Duration(ns); d.Allowed || d.RetryAfter != want {
				t.Fatalf("N %d, at %d ns: %+v, want %v to wait", n, ns, d, want)
			}
		}
	}
}

// TestBanEmptiesItsOwnCountOnly bans for less than the limit's span: what the
// limit has allowed still counts afterwards.
func TestBanEmptiesItsOwnCountOnly(t *testing.T) {
	l := mustLimiter(t, mustSet(t, ratelimit.Rule{
		Name: "r", Key: mustKey(t, "client"), Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
		Ban: &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Minute, For: time.Second},
	}), ratelimit.Config{})
	var got []byte
	for ms := int64(0); ms < 5000; ms += 500 {
		d := takeKeyN(l, at(ms), "k", 1)
		switch {
		case d.Allowed:
			got = append(got, 'A')
		case !d.BannedUntil.IsZero():
			got = append(got, 'B')
		default:
			got = append(got, 'D')
		}
	}
	// Two allowed; a refusal; the second refusal bans for a second, in which
	// one more event falls; then the same again, as the limit is still full.
	if want := "AADBBDBBDB"; string(got) != want {
		t.Errorf("decisions %s, want %s", got, want)
	}
}
