// Package accesslog reads log lines, as bytes, into events that rules match
// on: [match.Event].
//
// A [Format] is one of the named ones, such as "clf" for the access logs of
// Apache and nginx, or is written by hand as a spec that says where a JSON,
// CSV or TSV line has its time and its fields; see [ParseFormat]. [Detect]
// guesses a named one from the start of a file. A [Parser] turns single lines
// into events and is what parallel readers use, one per goroutine; a [Scanner]
// does the reading too and is what everyone else uses.
//
// No regular expression is involved: each format is a scanner over bytes that
// needs time linear in the length of any line, allocates
// nothing per line and never panics. The values of an event are views of the
// line.
//
// # Lines
//
// A log is cut at '\n'. One '\r' at the end of a line is removed. A last line
// without '\n' counts; an empty line is a line. A line that the format does
// not describe, or of more than [MaxLine] bytes, is bad: it is counted and has
// no event. An ordinary line of another kind, which the syslog formats know, is
// skipped: see [Parser.Skipped]. Lines = parsed + skipped + bad.
//
// A byte order mark in front of a line is no part of it.
//
// # Times
//
// Zone offsets are applied. A date that is not in the calendar, and second 60,
// make a line bad. Years 1 to 9999 are read. Fractions are cut to nanoseconds.
package accesslog
