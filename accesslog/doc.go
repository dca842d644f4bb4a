// Package accesslog reads log lines, as bytes, into events that rules match
// on: [match.Event].
//
// A [Format] has a name, such as "clf" for the access logs of Apache and nginx, or a
// spec that says where a JSON, CSV or TSV line has its time and its fields; see
// [ParseFormat]. [Detect] finds the named format of a file from its first bytes.
// [CutLine] cuts a log into lines, and a [Parser], one per goroutine, turns them into
// events.
//
// Each format is a scanner over bytes, without regular expressions: it takes time linear
// in the length of the line, allocates nothing per line and never panics. The values of
// an event are views of the line.
//
// # Lines
//
// A log is cut at '\n'. One '\r' at the end of a line is removed. A last line
// without '\n' counts; an empty line is a line. A line that the format does
// not describe, or of more than [MaxLine] bytes, is bad: it is counted and has
// no event. Formats of logs with lines of several kinds skip the others: see
// [Parser.Skipped]. Lines = parsed + skipped + bad.
//
// Byte order marks in front of a line are ignored.
//
// # Times
//
// Zone offsets are applied, and times that name no zone are in [Options].Zone. A date that is
// not in the calendar makes a line bad. A leap second is the second after it. Years 1 to 9999
// are read. Fractions are cut to nanoseconds.
//
// Times of syslog may have no year. Each line says for itself whether it has one: a log has
// lines of both kinds after an upgrade. A year that a line names is used as it is. Lines without
// one are dated relative to each other, see [Options] and [InYear].
package accesslog
