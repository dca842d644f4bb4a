package follow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones of the tests, on any machine

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// banAfterFour bans for ten minutes after four events in ten minutes.
func banAfterFour(t *testing.T) *ratelimit.Limiter {
	t.Helper()
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	l := must.Get(ratelimit.New(ratelimit.Rule{Name: "sshd", Key: key, Ban: &ratelimit.Ban{After: 4, Span: 10 * time.Minute, For: 10 * time.Minute}}))(t)
	return l
}

// followGuesses guesses a password once a minute, for some hours from start, at a server that logs in the zone written. It
// returns for how many guesses a follower that reads the log in the zone read, nil for the default, decides
// something else than is right, and how many bans began.
func followGuesses(t *testing.T, written, read *time.Location, start time.Time, log *slog.Logger) (wrong, bans int) {
	t.Helper()
	time.Sleep(time.Until(start))
	path := filepath.Join(t.TempDir(), "auth.log")
	right, followed := banAfterFour(t), banAfterFour(t)
	format := must.Get(accesslog.ParseFormat("messages"))(t)
	decisions := 0
	f := must.Get(New(Config{Logs: []Log{{Path: path, Format: format, Zone: read}}, Log: log, Judge: func(ev *match.Event) {
		now := time.Now()
		got, want := followed.TakeAt(ev.Time, ev, 1), right.TakeAt(now, ev, 1)
		if got.Allowed != want.Allowed || got.Started != want.Started || !got.BannedUntil.Equal(want.BannedUntil) {
			wrong++
		}
		if got.Started {
			bans++
		}
		decisions++
	}}))(t)
	defer f.close()
	f.poll(context.Background(), time.Now())
	const hours = 5
	for range hours * 60 {
		file := must.Get(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t)
		fmt.Fprintf(file, "%s host sshd[1]: Failed password for root from 192.0.2.1 port 22 ssh2\n", time.Now().In(written).Format(time.Stamp))
		must.Do(t, file.Close())
		f.poll(context.Background(), time.Now().Add(2*discover))
		time.Sleep(time.Minute)
	}
	if decisions != hours*60 {
		t.Errorf("%d of %d guesses were read", decisions, hours*60)
	}
	return wrong, bans
}

// Bans from a log without a zone begin and end when they should, also when clocks are set forward or back, and
// around the new year. The control reads the log in a zone further east, so that its lines are old: as UTC for New York, which was
// the default. Lines that seem to come from the future are judged now.
func TestZones(t *testing.T) {
	for _, tt := range []struct{ zone, start, control string }{
		{"America/New_York", "2000-04-02 00:00:00", "UTC"},
		{"America/New_York", "2000-10-29 00:00:00", "UTC"},
		{"Asia/Kolkata", "2000-04-02 00:00:00", "Asia/Tokyo"},
		{"Asia/Kolkata", "2000-12-31 21:00:00", "Asia/Tokyo"},
		{"Europe/Vienna", "2000-03-26 00:00:00", "Asia/Kolkata"},
		{"Europe/Vienna", "2000-10-29 00:00:00", "Asia/Kolkata"},
		{"Pacific/Auckland", "2000-03-19 00:00:00", "Pacific/Kiritimati"},
		{"Pacific/Auckland", "2000-10-01 00:00:00", "Pacific/Kiritimati"},
	} {
		t.Run(tt.zone+" "+tt.start, func(t *testing.T) {
			zone := must.Get(time.LoadLocation(tt.zone))(t)
			control := must.Get(time.LoadLocation(tt.control))(t)
			start := must.Get(time.ParseInLocation(time.DateTime, tt.start, zone))(t)
			synctest.Test(t, func(t *testing.T) {
				if wrong, bans := followGuesses(t, zone, zone, start, nil); wrong > 0 || bans == 0 {
					t.Errorf("%d guesses were judged wrongly, %d bans began", wrong, bans)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				if wrong, _ := followGuesses(t, zone, control, start, nil); wrong == 0 {
					t.Error("the control was judged well")
				}
			})
		})
	}
}

// A follower whose zone differs from the log's logs that once, and otherwise
// never.
func TestZoneIsWrong(t *testing.T) {
	zone := must.Get(time.LoadLocation("America/New_York"))(t)
	for read, want := range map[*time.Location]string{zone: "", time.UTC: `behind=5h0m0s zone=UTC`} {
		synctest.Test(t, func(t *testing.T) {
			var text bytes.Buffer
			start := time.Date(2000, 2, 1, 12, 0, 0, 0, zone)
			followGuesses(t, zone, read, start, slog.New(slog.NewTextHandler(&text, nil)))
			got := strings.Count(text.String(), "whole half hours")
			if want == "" && got != 0 || want != "" && (got != 1 || !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "--tz")) {
				t.Errorf("read in %v, the log says\n%s", read, text.String())
			}
		})
	}
}

// Only the same whole half hours in several blocks of lines count as another zone.
func TestZoneCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		behind []time.Duration
		want   int
	}{
		{"in step", []time.Duration{time.Second, 2 * time.Second, 0, time.Minute}, 0},
		{"behind", []time.Duration{5 * time.Hour, 5*time.Hour + time.Second, 5 * time.Hour, 5 * time.Hour}, 1},
		{"ahead", []time.Duration{-90 * time.Minute, -90 * time.Minute, -89 * time.Minute}, 1},
		{"too few", []time.Duration{5 * time.Hour, 5 * time.Hour}, 0},
		{"an old log appended", []time.Duration{9 * time.Hour, 8*time.Hour + 40*time.Minute, 8 * time.Hour, 7 * time.Hour}, 0},
		{"a slow program", []time.Duration{28 * time.Minute, 28 * time.Minute, 28 * time.Minute, 28 * time.Minute}, 0},
		{"days", []time.Duration{48 * time.Hour, 48 * time.Hour, 48 * time.Hour, 48 * time.Hour}, 0},
		{"another zone later", []time.Duration{time.Hour, time.Hour, time.Hour, 2 * time.Hour, 2 * time.Hour, 2 * time.Hour}, 2},
		{"mended and wrong again", []time.Duration{time.Hour, time.Hour, time.Hour, 0, time.Hour, time.Hour, time.Hour}, 2},
	} {
		var c zoneCheck
		got := 0
		for _, d := range tt.behind {
			if c.look(d) {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s: %d reports, want %d", tt.name, got, tt.want)
		}
	}
}

// Dates that may begin with the day or with the month are read in the order that fits the clock, unless the format of the
// log is given. The log has a line about it.
func TestDatesOfEitherOrder(t *testing.T) {
	for _, tt := range []struct{ layout, format, taken string }{
		{"02/01/2006 15:04:05", "", "text-dmy"},
		{"01/02/2006 15:04:05", "", "text-mdy"},
		{"02-01-2006 15:04:05", "", "text-dmy"},
		{"01-02-2006 15:04:05", "", "text-mdy"},
		{"01/02/2006 15:04:05", "text", "text"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Date(2000, 5, 4, 12, 0, 0, 0, time.UTC)
			time.Sleep(time.Until(start))
			path := filepath.Join(t.TempDir(), "shop.log")
			line := start.Format(tt.layout) + " login of ann refused, client 192.0.2.1\n"
			must.Do(t, os.WriteFile(path, []byte(line), 0o600))
			followed := Log{Path: path, Zone: time.UTC}
			if tt.format != "" {
				followed.Format = must.Get(accesslog.ParseFormat(tt.format))(t)
			}
			var text bytes.Buffer
			var got time.Time
			f := must.Get(New(Config{Logs: []Log{followed}, Log: slog.New(slog.NewTextHandler(&text, nil)), Judge: func(ev *match.Event) { got = ev.Time }}))(t)
			defer f.close()
			f.poll(context.Background(), time.Now())
			if !got.Equal(start) || !strings.Contains(text.String(), "taken="+tt.taken+"\n") {
				t.Errorf("%q as %q: %v, want %v as %s:\n%s", line, tt.format, got, start, tt.taken, text.String())
			}
		})
	}
}
