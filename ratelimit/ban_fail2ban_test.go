package ratelimit_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// The lengths of bans that fail2ban promises for bantime.increment, in its documentation (config/jail.conf, man jail.conf)
// and its own tests (tests/observertestcase.py), with a bantime of 600 s: for a ban after 1, 2, ... 10 earlier ones. The
// first ban always lasts bantime, whatever the formula.

const fail2banTime = 600 * time.Second

// fail2banFormula is its default formula: bantime * 2^min(count, 20) * factor,
// at most maxtime.
func fail2banFormula(bantime time.Duration, count int, factor float64, maxtime time.Duration) time.Duration {
	if count == 0 {
		return bantime
	}
	d := float64(bantime) * math.Pow(2, float64(min(count, 20))) * factor
	return time.Duration(min(d, float64(maxtime)))
}

// fail2banMultipliers returns the steps for bantime.multipliers: each multiplied by bantime and the factor.
func fail2banMultipliers(bantime time.Duration, multipliers []int, factor float64) []time.Duration {
	steps := []time.Duration{bantime}
	for _, m := range multipliers[1:] {
		d := float64(bantime) * float64(m) * factor
		steps = append(steps, time.Duration(min(d, float64(limit.MaxSpan))))
	}
	return steps
}

func lasts(t *testing.T, b ratelimit.Ban) []int {
	t.Helper()
	b.Span = time.Second
	must.Do(t, banError(t, b))
	seconds := make([]int, 10)
	for i := range seconds {
		seconds[i] = int(b.Duration(i+1) / time.Second)
	}
	return seconds
}

func TestFail2banTables(t *testing.T) {
	const day = 24 * time.Hour
	doubling := func(n int) []int {
		var m []int
		for i := range n {
			m = append(m, 1<<i)
		}
		return m
	}
	for name, c := range map[string]struct {
		ban  ratelimit.Ban
		want []int
	}{
		"formula, maxtime 1d": {
			ratelimit.Ban{For: fail2banTime, Factor: 2, Max: day},
			[]int{1200, 2400, 4800, 9600, 19200, 38400, 76800, 86400, 86400, 86400},
		},
		"formula, maxtime 30d": {
			ratelimit.Ban{For: fail2banTime, Factor: 2, Max: 30 * day},
			[]int{1200, 2400, 4800, 9600, 19200, 38400, 76800, 153600, 307200, 614400},
		},
		"formula, maxtime 12h": {
			ratelimit.Ban{For: fail2banTime, Factor: 2, Max: 12 * time.Hour},
			[]int{1200, 2400, 4800, 9600, 19200, 38400, 43200, 43200, 43200, 43200},
		},
		"factor 2": {
			ratelimit.Ban{Steps: fail2banMultipliers(fail2banTime, doubling(21), 2), Max: day},
			[]int{2400, 4800, 9600, 19200, 38400, 76800, 86400, 86400, 86400, 86400},
		},
		"factor 1.33": {
			ratelimit.Ban{Steps: fail2banMultipliers(fail2banTime, doubling(21), 1.33), Max: day},
			[]int{1596, 3192, 6384, 12768, 25536, 51072, 86400, 86400, 86400, 86400},
		},
		"nine multipliers, maxtime 30d": {
			ratelimit.Ban{Steps: fail2banMultipliers(fail2banTime, doubling(9), 1), Max: 30 * day},
			[]int{1200, 2400, 4800, 9600, 19200, 38400, 76800, 153600, 153600, 153600},
		},
		"many multipliers, maxtime 30d": {
			ratelimit.Ban{Steps: fail2banMultipliers(fail2banTime, doubling(31), 1), Max: 30 * day},
			[]int{1200, 2400, 4800, 9600, 19200, 38400, 76800, 153600, 307200, 614400},
		},
		"multipliers 1 2 4 8 16 32 64": {
			ratelimit.Ban{Steps: fail2banMultipliers(fail2banTime, doubling(7), 1)},
			[]int{1200, 2400, 4800, 9600, 19200, 38400, 38400, 38400, 38400, 38400}, // 10.6 hours at last
		},
		// For a bantime of 60 s: minutes up to half an hour, then 1, 5 and 12
		// hours, one day and two.
		"multipliers 1 5 30 60 300 720 1440 2880": {
			ratelimit.Ban{Steps: fail2banMultipliers(time.Minute, []int{1, 5, 30, 60, 300, 720, 1440, 2880}, 1)},
			[]int{300, 1800, 3600, 18000, 43200, 86400, 172800, 172800, 172800, 172800},
		},
	} {
		if got := lasts(t, c.ban); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestFail2banFormula compares Factor 2 with the default formula, and steps with
// the formula and a factor, for bantimes from a second to a day.
func TestFail2banFormula(t *testing.T) {
	for _, bantime := range []time.Duration{time.Second, time.Minute, fail2banTime, 3600 * time.Second, 24 * time.Hour} {
		for _, maxtime := range []time.Duration{24 * time.Hour, 30 * 24 * time.Hour, limit.MaxSpan} {
			top := time.Duration(min(float64(maxtime), math.Ldexp(float64(bantime), 20)))
			b := ratelimit.Ban{For: bantime, Factor: 2, Max: top}
			for count := range 100 {
				if got, want := b.Duration(count), fail2banFormula(bantime, count, 1, maxtime); got != want {
					t.Errorf("bantime %v, count %d: %v, want %v", bantime, count, got, want)
				}
			}
			for _, factor := range []float64{1, 1.5, 10} {
				b := ratelimit.Ban{Max: maxtime}
				for count := range 21 {
					b.Steps = append(b.Steps, fail2banFormula(bantime, count, factor, maxtime))
				}
				for count := range 100 {
					if got, want := b.Duration(count), fail2banFormula(bantime, count, factor, maxtime); got != want {
						t.Errorf("bantime %v, factor %v, count %d: %v, want %v", bantime, factor, count, got, want)
					}
				}
			}
		}
	}
}

// TestFail2banOneBanAfterAnother checks bantime.increment from the view of a client: a key that is banned again as soon as
// it is released, and one that stays away for longer than fail2ban keeps bans (dbpurgeage, a day).
func TestFail2banOneBanAfterAnother(t *testing.T) {
	multipliers := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}
	l := mustLimiter(t, mustSet(t, ratelimit.Rule{
		Name: "sshd", Key: mustKey(t, "client"),
		Ban: &ratelimit.Ban{After: 2, Span: 10 * time.Minute, Steps: fail2banMultipliers(10*time.Second, multipliers, 1)},
	}), ratelimit.Config{})
	now := at(0)
	ban := func(want time.Duration) {
		t.Helper()
		for range 2 {
			if d := takeKeyN(l, now, "k", 1); !d.Allowed {
				t.Fatalf("refused before the third: %+v", d)
			}
		}
		d := takeKeyN(l, now, "k", 1)
		if got := d.BannedUntil.Sub(now); d.Allowed || got != want {
			t.Fatalf("banned for %v, want %v", got, want)
		}
		now = d.BannedUntil
	}
	for _, m := range append(multipliers, 2048, 2048) {
		ban(time.Duration(m) * 10 * time.Second)
	}
	now = now.Add(24 * time.Hour)
	ban(20480 * time.Second)
	now = now.Add(24*time.Hour + 1)
	ban(10 * time.Second)
	ban(20 * time.Second)
}
