package accesslogtest

import (
	"fmt"
	"slices"
	"time"
)

// A Format is the name of a log format that [Write] can produce. The names are
// those that package accesslog reads.
type Format string

// The formats that [Write] produces.
const (
	CLF        Format = "clf"         // Combined Log Format, as Apache and nginx write it
	JSONNginx  Format = "json-nginx"  // one JSON object a line, nginx's variable names
	SyslogSSHD Format = "syslog-sshd" // sshd by syslog: no year, no zone
)

// Formats returns the names of all formats, in a fixed order.
func Formats() []Format { return []Format{CLF, JSONNginx, SyslogSSHD} }

// A Config says what log to write. Its zero value is a day of 100,000 lines in
// Combined Log Format, in time order.
type Config struct {
	// Seed chooses the log: same seed, same bytes. Every seed is good.
	Seed uint64

	// Format is the format of the lines. Default CLF.
	Format Format

	// Lines is the exact number of lines, dirty ones included.
	// Default 100,000; at most 1,000,000,000.
	Lines int

	// Start is the time of the beginning of the log; a fraction of a second
	// is cut off. Its zone is the zone that the lines carry. Default
	// 2026-03-02 00:00:00 UTC.
	Start time.Time

	// Duration is the stretch of time that the lines are spread over, in
	// whole seconds: all times are in [Start, Start+Duration). Default 24 h;
	// at least 1 s, at most 3660 days. What is planted shrinks with it.
	Duration time.Duration

	// Clients is the number of clients that the ordinary sessions are drawn
	// from, by a Zipf law. Default one for every 60 lines and at least 50;
	// at most 16,777,216. Not all of them need appear.
	Clients int

	// Late, when positive, makes the log disordered, as a log is that is
	// written when a request ends: about one line in 16 is written after
	// lines that are up to Late newer. Whole seconds, at most 1 h.
	Late time.Duration

	// HighBytes puts bytes of 0x80 and above, valid UTF-8 and not, into
	// some paths. CLF and JSONNginx only. As nginx does, JSONNginx writes
	// them as they are: a line whose bytes are not UTF-8 is then not JSON,
	// and bad to a strict reader, which Truth.Bad does not count.
	HighBytes bool
}

// Limits of a Config, and the defaults that depend on nothing.
const (
	defaultLines    = 100_000
	maxLines        = 1_000_000_000
	defaultDuration = 24 * time.Hour
	maxDuration     = 3660 * 24 * time.Hour
	maxClients      = 1 << 24
	maxLate         = time.Hour
)

// withDefaults returns c with defaults filled in, or an error that names the
// field that is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Format == "" {
		c.Format = CLF
	}
	if c.Lines == 0 {
		c.Lines = defaultLines
	}
	if c.Start.IsZero() {
		c.Start = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	}
	c.Start = c.Start.Add(-time.Duration(c.Start.Nanosecond()))
	if c.Duration == 0 {
		c.Duration = defaultDuration
	}
	if c.Clients == 0 {
		c.Clients = min(max(50, c.Lines/60), maxClients)
	}
	return c, c.validate()
}

func (c Config) validate() error {
	switch {
	case !slices.Contains(Formats(), c.Format):
		return fmt.Errorf("accesslogtest: Format is %q; it must be one of %v", c.Format, Formats())
	case c.Lines < 1 || c.Lines > maxLines:
		return fmt.Errorf("accesslogtest: Lines is %d; it must be between 1 and %d, or 0 for %d", c.Lines, maxLines, defaultLines)
	case c.Duration < time.Second || c.Duration > maxDuration || c.Duration%time.Second != 0:
		return fmt.Errorf("accesslogtest: Duration is %v; it must be whole seconds between 1s and %v, or 0 for %v", c.Duration, maxDuration, defaultDuration)
	case c.Clients < 1 || c.Clients > maxClients:
		return fmt.Errorf("accesslogtest: Clients is %d; it must be between 1 and %d, or 0 for one per 60 lines", c.Clients, maxClients)
	case c.Late < 0 || c.Late > maxLate || c.Late%time.Second != 0:
		return fmt.Errorf("accesslogtest: Late is %v; it must be whole seconds between 0 and %v", c.Late, maxLate)
	case c.HighBytes && c.Format == SyslogSSHD:
		return fmt.Errorf("accesslogtest: HighBytes is set with Format %q, which has no paths; use it with %q or %q", c.Format, CLF, JSONNginx)
	case !fourDigitYear(c.Start) || !fourDigitYear(c.Start.Add(c.Duration)):
		return fmt.Errorf("accesslogtest: Start is %v and the log lasts %v; all years must be between 1 and 9999", c.Start, c.Duration)
	}
	return nil
}

func fourDigitYear(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }
