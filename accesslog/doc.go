// Package accesslog reads log lines, as bytes, into events that rules match
// on: [match.Event].
//
// A [Format] has a name, such as "clf" for the access logs of Apache and nginx, or a
// spec of the places of the time and the fields in a JSON, CSV or TSV line; see
// [ParseFormat]. [Detect] finds the named format of a file from its first bytes.
// [CutLine] cuts a log into lines, and a [Parser], one per goroutine, turns them
// into events.
//
// Each format is a scanner over bytes, without regular expressions: it takes time linear
// in the length of the line, allocates nothing per line and never panics. The values of
// an event are views of the line.
//
// # Lines
//
// A log is cut at '\n'. One '\r' at the end of a line is removed. A last line
// without '\n' counts, and so does an empty line. A line that does not have the
// format, or has more than [MaxLine] bytes, is bad: it is counted and makes no
// event. In logs with lines of several kinds, the other kinds are skipped: see
// [Parser.Skipped]. Lines = parsed + skipped + bad.
//
// Byte order marks before a line are ignored.
//
// # Times
//
// Zone offsets are applied, and times without a zone are in [Options.Zone]. A line with an
// impossible date is bad. A leap second is read as the second after it. Years 1 to 9999 are
// read. Fractions are cut to nanoseconds.
//
// Syslog times may lack the year; after an upgrade, one log can have lines with and
// without. A year in a line is used. Lines without a year are dated relative to each other,
// see [Options] and [InYear].
package accesslog
