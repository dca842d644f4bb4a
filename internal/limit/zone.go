package limit

import "time"

// A Zone identifies a time zone, which a rules file that is read again loads again: two of
// one name may differ only if they were made by hand. The zero Zone is of none.
type Zone struct {
	Name    string
	January int // the offset in January 2025, in seconds
}

// ZoneOf returns the identity of a zone, which may be nil.
func ZoneOf(zone *time.Location) Zone {
	if zone == nil {
		return Zone{}
	}
	_, seconds := time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC).In(zone).Zone()
	return Zone{zone.String(), seconds}
}
