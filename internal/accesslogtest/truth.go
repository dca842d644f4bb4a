package accesslogtest

import "time"

// Truth is the contents of a log that [Write] has written: what a correct reader counts
// and what a correct rule finds.
type Truth struct {
	// Lines is the number of lines, and Bad that of empty and cut ones.
	Lines, Bad int

	// Clients is the number of distinct clients of the other lines.
	Clients int

	// Crawler is a client that requests one page after the other, evenly,
	// from beginning to end.
	Crawler Burst

	// Flood is one client that repeats one request, evenly.
	Flood Burst

	// Crowd is several clients that do so together, in turn: each makes its
	// share of the lines, to within one.
	Crowd Burst

	// HotProduct is the sudden run on one path by many ordinary clients. It
	// begins at its full rate and fades out: half of its lines are in the first
	// quarter of its time.
	HotProduct Burst
}

// A Burst is traffic that [Write] planted. It is zero if the log is too short for it.
type Burst struct {
	// Clients are the clients that make it, and that make no other line of
	// the log. It is nil for the hot product, whose clients are many.
	Clients []string

	// Path is what they all request, without query; empty for the crawler.
	// The hot product's Path is requested in the burst only.
	Path string

	// Begin and End bound the times of its lines: [Begin, End).
	Begin, End time.Time

	// Lines is the number of its lines, none of which is bad.
	Lines int
}
