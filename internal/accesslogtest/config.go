package accesslogtest

import (
	"cmp"
	"fmt"
	"time"
)

// A Config says what log to write. Its zero value is a day of 100,000 lines. All logs
// begin on 2026-03-02 at 00:00:00 UTC.
type Config struct {
	// Seed chooses the log: same seed, same bytes.
	Seed uint64

	// Lines is the exact number of lines, dirty ones included.
	// Default 100,000; at most 1,000,000,000.
	Lines int

	// Duration is the time that the lines are spread over, in whole seconds. Default
	// 24 h; 1 s to 3660 days. The planted traffic shrinks with it.
	Duration time.Duration
}

const (
	maxLines    = 1_000_000_000
	maxDuration = 3660 * 24 * time.Hour
	maxClients  = 1 << 24
)

// start is the time at which all logs begin.
var start = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// withDefaults returns c with defaults filled in, or an error that names the
// field that is wrong.
func (c Config) withDefaults() (Config, error) {
	c.Lines = cmp.Or(c.Lines, 100_000)
	c.Duration = cmp.Or(c.Duration, 24*time.Hour)
	switch {
	case c.Lines < 1 || c.Lines > maxLines:
		return c, fmt.Errorf("accesslogtest: Lines: %d: must be 1 to %d", c.Lines, maxLines)
	case c.Duration < time.Second || c.Duration > maxDuration || c.Duration%time.Second != 0:
		return c, fmt.Errorf("accesslogtest: Duration: %v: must be whole seconds, 1s to %v", c.Duration, maxDuration)
	}
	return c, nil
}

// clients is the number of clients that the ordinary sessions are drawn from. Not all
// of them need appear.
func (c Config) clients() int { return min(max(50, c.Lines/60), maxClients) }
