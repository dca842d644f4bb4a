package follow

import "time"

const (
	halfHour = 30 * time.Minute

	// A log whose new lines are this near to a whole number of half hours before or after the
	// present is taken to be written in another zone: the last sameOffset blocks of lines must agree.
	nearHalfHour = time.Minute
	sameOffset   = 3
	maxZone      = 14 * time.Hour
)

// A zoneCheck finds out that the lines of a log are in another zone than their times are read in.
type zoneCheck struct {
	offset   time.Duration // of the last block of new lines, in whole half hours
	blocks   int           // how many blocks in a row had it
	reported time.Duration
}

// look takes by how much the newest of the lines that were just written is behind now. It returns
// true if that has been the same number of half hours for some blocks of lines, once.
func (c *zoneCheck) look(behind time.Duration) bool {
	offset := behind.Round(halfHour)
	if (behind-offset).Abs() > nearHalfHour || offset.Abs() > maxZone || offset != c.offset {
		c.offset, c.blocks = offset, 0
	}
	c.blocks++
	if offset == 0 {
		c.reported = 0
		return false
	}
	if c.blocks < sameOffset || c.reported == offset {
		return false
	}
	c.reported = offset
	return true
}

// checkZone logs that the times of lines that were just written are whole half hours off. What such
// lines begin is over at once, or begins too late.
func (r *logReader) checkZone(newest int64, now time.Time) {
	if !r.caughtUp || !r.zoneCheck.look(now.Sub(time.Unix(0, newest))) {
		return
	}
	remedy := "its program must write the zone of its times"
	if r.format.Zoneless() {
		remedy = "set its zone with --tz"
	}
	r.log.Warn("new lines of the log are whole half hours behind or ahead of the clock: their bans end too early or begin too late; "+remedy,
		"file", r.path, "behind", r.zoneCheck.offset.String(), "zone", r.zone.String())
}
