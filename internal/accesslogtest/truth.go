package accesslogtest

import "time"

// Truth is what a log written by [Write] holds: what a correct reader counts
// and what a correct rule finds.
type Truth struct {
	// Lines is the number of lines, and Bytes their size.
	Lines int
	Bytes int64

	// Bad is the number of lines that are no event: empty or cut lines and,
	// in SyslogSSHD, every line that is not a failed login.
	Bad int

	// Clients is the number of distinct clients of the events.
	Clients int

	// First and Last are the smallest and the largest time of an event; both
	// are zero when there is none.
	First, Last time.Time

	// Late is the number of events written after one with a larger time, and
	// MaxLate the largest difference. Both are zero without Config.Late.
	Late    int
	MaxLate time.Duration

	// Crawler is a client that asks for one page after the other, evenly,
	// from beginning to end. In SyslogSSHD it tries one user after the other.
	Crawler Burst

	// Flood is one client that repeats one request, evenly.
	Flood Burst

	// Crowd is several clients that do so together, in turn: each makes its
	// share of the lines, to within one.
	Crowd Burst

	// HotProduct is the sudden run on one path by many ordinary clients. It
	// sets in at once and fades out: half of its lines fall in the first
	// quarter of its time. Absent from SyslogSSHD.
	HotProduct Burst
}

// A Burst is traffic that [Write] planted. Its Lines is 0, and the rest zero,
// when the log is too short for it or it was not wanted.
type Burst struct {
	// Clients are the clients that make it, and that make no other line of
	// the log. It is nil for the hot product, whose clients are many.
	Clients []string

	// Path is what they all ask for, without query; empty for the crawler
	// and in SyslogSSHD. Nobody asks for the hot product's Path but in the
	// burst.
	Path string

	// Begin and End bound the times of its lines: [Begin, End).
	Begin, End time.Time

	// Lines is the number of its lines, none of which is bad.
	Lines int
}
