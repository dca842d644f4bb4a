package accesslog

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, on any machine

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

func loadZone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone := must.Get(time.LoadLocation(name))(t)
	return zone
}

// Every half minute of the days around the changes of the clocks is written as clocks show it,
// in order, and read as the time that it was.
func TestZoneClockReadsLogsInOrder(t *testing.T) {
	for _, tt := range []struct{ zone, from string }{
		{"Europe/Vienna", "2026-03-28"},
		{"Europe/Vienna", "2026-10-24"},
		{"America/New_York", "2026-03-07"},
		{"America/New_York", "2026-10-31"},
		{"Pacific/Auckland", "2026-04-04"},
		{"Pacific/Auckland", "2026-09-26"},
		{"Asia/Kolkata", "2026-03-28"},
		{"Australia/Lord_Howe", "2026-04-04"},
		{"UTC", "2026-03-28"},
	} {
		zone := loadZone(t, tt.zone)
		from := must.Get(time.ParseInLocation(time.DateOnly, tt.from, zone))(t)
		c := zoneClock{zone: zone}
		for at := from; at.Before(from.AddDate(0, 0, 3)); at = at.Add(30 * time.Second) {
			if got := c.seconds(localSeconds(at)); got != at.Unix() {
				t.Fatalf("%s: %v is read as %v", tt.zone, at, time.Unix(got, 0).In(zone))
			}
		}
	}
}

// localSeconds returns what clocks show at a time, in seconds, as a log without a zone has it.
func localSeconds(at time.Time) int64 {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC).Unix()
}

// A quiet log whose clocks were set back, times that were skipped, and old times.
func TestZoneClock(t *testing.T) {
	vienna := loadZone(t, "Europe/Vienna")
	for _, tt := range []struct{ last, local, want string }{
		{"", "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"},
		{"2026-10-25 01:50:00", "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"},
		{"2026-10-25 03:10:00", "2026-10-25 02:50:00", "2026-10-25T01:50:00Z"},
		{"", "2026-03-29 02:30:00", "2026-03-29T01:30:00Z"}, // skipped
		{"", "1900-01-01 00:00:00", "1899-12-31T23:00:00Z"},
		{"", "9999-12-31 23:59:59", "9999-12-31T22:59:59Z"},
	} {
		c := zoneClock{zone: vienna}
		for _, text := range []string{tt.last, tt.local} {
			if text == "" {
				continue
			}
			local := must.Get(time.Parse(time.DateTime, text))(t)
			c.seconds(local.Unix())
		}
		if got := time.Unix(c.last, 0).UTC().Format(time.RFC3339); got != tt.want {
			t.Errorf("%q after %q is read as %s, want %s", tt.local, tt.last, got, tt.want)
		}
	}
}

// Formats without a zone read their times in the zone of the options; others do not.
func TestOptionsZone(t *testing.T) {
	kolkata := loadZone(t, "Asia/Kolkata")
	const w3cLocal = "#Fields: date-local time-local c-ip\n2026-11-27 15:00:00 192.0.2.1"
	for _, tt := range []struct {
		format, lines, want string
		zoneless            bool
	}{
		{"messages", "Nov 27 15:00:00 h sshd[1]: Failed password for root from 192.0.2.1 port 22 ssh2", "2026-11-27T09:30:00Z", true},
		{"messages", "2026-11-27T15:00:00+00:00 h sshd[1]: Failed password for root from 192.0.2.1 port 22 ssh2", "2026-11-27T15:00:00Z", true},
		{"messages", "2026-11-27 15:00:00 login authenticator failed for (x) [192.0.2.1]: 535 Incorrect authentication data", "2026-11-27T09:30:00Z", true},
		{"haproxy", `192.0.2.1:1 [27/Nov/2026:15:00:00.250] f b/s 0/0/0/1/1 200 1 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"`, "2026-11-27T09:30:00.25Z", true},
		{"w3c", w3cLocal, "2026-11-27T09:30:00Z", false}, // what its times are depends on the log
		{"w3c", "#Fields: date time c-ip\n2026-11-27 15:00:00 192.0.2.1", "2026-11-27T15:00:00Z", false},
		{"clf", `192.0.2.1 - - [27/Nov/2026:15:00:00 +0000] "GET / HTTP/1.1" 200 1`, "2026-11-27T15:00:00Z", false},
	} {
		f := must.Get(ParseFormat(tt.format))(t)
		if f.Zoneless() != tt.zoneless {
			t.Errorf("%s: Zoneless is %v", tt.format, f.Zoneless())
		}
		for zone, want := range map[*time.Location]string{kolkata: tt.want, nil: "2026-11-27T15:00:00"} {
			p := must.Get(f.NewParser(Options{Year: 2026, Zone: zone}))(t)
			var ev match.Event
			var ok bool
			for line := range strings.Lines(tt.lines) {
				ok = p.Parse([]byte(strings.TrimSuffix(line, "\n")), &ev)
			}
			if got := ev.Time.Format(time.RFC3339Nano); !ok || !strings.HasPrefix(got, want) {
				t.Errorf("%s in %v: %v %s, want %s", tt.format, zone, ok, got, want)
			}
		}
	}
}
