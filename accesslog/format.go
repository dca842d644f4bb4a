package accesslog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/match"
)

// A Format describes the lines of a log. [ParseFormat] and [Detect] return one. It is
// immutable and safe for concurrent use. In the zero Format every line is bad.
type Format struct {
	kind *lineKind // nil: every line is bad
	text string    // name or spec
	spec *spec     // nil for some named formats

	inner   *Format  // of the lines that are inside the lines
	filters *filters // of patterns
}

// A lineKind is how the lines of one or more formats are read.
type lineKind struct {
	parse  func(p *Parser, line []byte, ev *match.Event) bool
	fields []string // of events, if the format has no spec

	cut func(line []byte) (inner []byte, ok bool) // the line inside a line, of formats with a prefix

	// Of formats whose columns a line of the log names: whether they are those of
	// CloudFront.
	namesColumns, cloudFront bool

	messages bool      // lines may be of syslog, and their times may have no year; see Parser.setMessage
	order    dateOrder // of dates of three numbers; noOrder unless the format is text
}

var (
	requestFields = []string{"object", "method", "path", "query", "protocol"}
	clfFields     = slices.Concat([]string{"client"}, requestFields, []string{"status", "size", "user", "referer", "agent", "x_forwarded_for", "host"})

	jsonLines      = &lineKind{parse: (*Parser).json}
	delimitedLines = &lineKind{parse: (*Parser).delimited}
	textLines      = &lineKind{parse: (*Parser).text}
	haproxyLines   = &lineKind{parse: (*Parser).haproxy}

	w3cFields       = slices.Concat(clfFields, []string{"duration"})
	w3cLines        = &lineKind{parse: (*Parser).w3c, fields: w3cFields, namesColumns: true}
	cloudFrontLines = &lineKind{parse: (*Parser).w3c, fields: w3cFields, namesColumns: true, cloudFront: true}

	dockerLines  = &lineKind{parse: (*Parser).docker}
	journalLines = &lineKind{parse: (*Parser).journald, fields: messageFields}
	messageLines = &lineKind{parse: (*Parser).headed, fields: messageFields, messages: true}
)

// The named formats.
var (
	clf       = Format{text: "clf", kind: &lineKind{parse: (*Parser).clf, fields: clfFields}}
	clfVHost  = Format{text: "clf-vhost", kind: &lineKind{parse: (*Parser).clfVHost, fields: clfFields}}
	clfQuoted = Format{text: "clf-quoted", kind: &lineKind{parse: (*Parser).clfQuoted, fields: clfFields}}

	jsonNginx = namedJSON("json-nginx", unitCLF, []want{
		{name: "time", path: []string{"time_local"}, onlyString: true},
		{name: "client", path: []string{"remote_addr"}, onlyString: true, must: true, mayBeEmpty: true},
		{name: "object", path: []string{"request"}, onlyString: true, must: true, mayBeEmpty: true, form: formRequest},
		{name: "status", path: []string{"status"}, dash: true},
		{name: "size", path: []string{"body_bytes_sent"}, dash: true},
		{name: "user", path: []string{"remote_user"}, dash: true},
		{name: "referer", path: []string{"http_referer"}, dash: true},
		{name: "agent", path: []string{"http_user_agent"}, dash: true},
		{name: "host", path: []string{"host"}, dash: true},
		{name: "host", path: []string{"server_name"}, dash: true, fallback: true},
	})
	jsonZeekDNS = namedJSON("json-zeek-dns", unitRFC3339, []want{
		{name: "time", path: []string{"ts"}, onlyString: true},
		{name: "client", path: []string{"id.orig_h"}, onlyString: true, must: true, mayBeEmpty: true},
		{name: "object", path: []string{"query"}, onlyString: true},
	})
)

// namedJSON returns a named format of JSON lines. Its wants begin with time, client and
// object.
func namedJSON(name string, u unit, wants []want) Format {
	s := &spec{unit: u, wants: wants, object: 2}
	return Format{text: name, kind: jsonLines, spec: s.compile()}
}

// String returns the name or the spec of the format.
func (f Format) String() string { return f.text }

// TextKeys reports whether the values of events are text in UTF-8, as in JSON
// formats. In all other formats they are the bytes of the line, in an unknown
// encoding.
func (f Format) TextKeys() bool {
	if f.inner != nil {
		return f.inner.TextKeys()
	}
	return f.kind == jsonLines || f.kind == journalLines || f.kind == commonJSON.kind
}

// Yearless reports whether times of the format may lack a year, as in syslog; see
// [Parser.Yearless], [Options] and [InYear].
func (f Format) Yearless() bool {
	if f.inner != nil {
		return f.inner.Yearless()
	}
	return f.kind != nil && f.kind.messages
}

// Zoneless reports whether times of the format may lack a zone; see
// [Parser.Zoneless] and [Options].
func (f Format) Zoneless() bool {
	if f.filters != nil {
		return f.filters.zoneless()
	}
	if f.kind == journalLines {
		return false
	}
	return f.Yearless() || f.spec != nil && (f.spec.unit == unitCLFMillis || f.spec.unit == unitLocal) || f.inner != nil && f.inner.Zoneless()
}

// namesColumns reports whether lines of the log name the columns of those after them.
func (f Format) namesColumns() bool { return f.kind != nil && f.kind.namesColumns }

// wraps reports whether the lines of f hold lines of another format.
func (f Format) wraps() bool {
	return f.kind != nil && (f.kind == dockerLines || f.kind == journalLines || f.kind.cut != nil)
}

// ParseFormat returns the format of that name, or of that spec.
//
// # Names
//
// [NamedFormats] lists them with examples. docker-json, journald-json and the formats with a
// prefix (syslog, compose, kubectl, stern and grep) may be followed by ":FORMAT", the format of
// the lines inside theirs.
//
// Object and Path of a web request are the undecoded target up to the first '?'; a
// request that is not METHOD SP TARGET has neither. A "-" counts as absent, except as
// Client.
//
// # Format strings
//
// "nginx:" is followed by the text of nginx's log_format, "apache:" by that of Apache's
// LogFormat. They must have a time. An nginx variable without a well-known field becomes
// a field of its name, since users define variables; an unknown directive of Apache is an
// error. If a field has several variables, the most precise is used, or the first. A
// value ends at the first occurrence of the text after its variable, a quoted value at
// the first quote without a backslash before it, and a user where a time follows. Status,
// size and duration are numbers or a dash; a line with another value is bad.
//
// # Patterns
//
// "regex:" is followed by the name of a file of patterns, or several joined by commas. Its
// lines are
//
//	# a comment
//	time   %Y-%m-%d %H:%M:%S
//	prefix ^ \[app\] (?P<content>.*)$
//	match  ^login failed for (?P<user>\S+) from <HOST>
//	ignore ^login failed for monitor
//
// A line of the log is an event if a match finds a client and no ignore matches. At least one
// match is required; all but prefix may be repeated. Without time, a well-known time is
// searched at the beginning of the line, then anywhere. The time is cut out of the line before
// the patterns are applied. If there is a prefix, a line must match it, and the other patterns
// are applied to its group content. Named groups become fields; <HOST> is an address or a host
// name, and <ADDR> an address, of the client. All events have the field filter: the file's
// name without its extension. With several files, a line has an event for each of them that
// matches.
//
// In journald-json:regex:FILE the patterns see HOST PROGRAM[PROCESS]: MESSAGE, and the time is
// that of the entry.
//
// The syntax is as in package regexp, with lookaround from Python, the backreferences (?P=name)
// and the conditions (?(name)yes|no). Times have the directives of strptime; %s is seconds since
// the epoch, or milliseconds, microseconds or nanoseconds by its number of digits, and {DATE}
// any well-known time. The pattern is also a regular expression: the time is its first unnamed
// group, or else the whole match. A time without a year is the latest one that is at most a day
// ahead of the clock.
//
// # Specs
//
// A spec names the kind of line and the place of each field:
//
//	json:time=PATH@UNIT,client=PATH,object=PATH
//	csv:time=N@UNIT,client=N,object=N
//	tsv:time=N@UNIT,client=N,object=N
//
// The time is required; UNIT is s, ms, us or ns, numbers since the epoch with
// or without a fraction, or rfc3339, or clf (17/Apr/2018:06:25:06 +0000).
// Client and object are optional, and any other field may be added, well known
// (status=PATH) or new. A line is bad if its time does not have the unit, if it
// lacks the client of the spec, and, in CSV and TSV, if it lacks a column of
// the spec. So a header line is bad. An empty object counts as absent.
//
// The object is taken whole. With @path after its place it is cut at the first
// '?', and Path and Query are set too; with @request it is a request line,
// which also gives Method and Protocol.
//
// N is the number of a column, from 1. CSV cells may be quoted (RFC 4180), but
// must not contain a line end. TSV has no quotes.
//
// PATH is a key, or at most 6 keys joined by dots for nested objects. A key that
// contains dots is found, too: "id.orig_h" finds the value of {"id.orig_h": 1} and of
// {"id": {"orig_h": 1}}. If a line has both, or a key twice, the last one counts. A
// backslash removes the meaning of the next byte, so that `\.` is a dot inside a key.
// Strings, numbers (their text in the line) and booleans are values; null, objects and
// lists are not. If the PATH of the object ends in [], it names a list, and each of its
// strings and numbers is an event, see [Parser.Next]; a line without the list is bad.
//
// The error names the bad part and what it must be.
func ParseFormat(nameOrSpec string) (Format, error) {
	if f, ok := formatNamed(nameOrSpec); ok {
		return f, nil
	}
	prefix, body, ok := strings.Cut(nameOrSpec, ":")
	if !ok {
		prefix = "" // of a name
	}
	f := Format{kind: delimitedLines, text: nameOrSpec}
	var err error
	switch prefix {
	case "json":
		f.kind = jsonLines
		f.spec, err = parseSpec(body, 0, false)
	case "csv":
		f.spec, err = parseSpec(body, ',', true)
	case "tsv":
		f.spec, err = parseSpec(body, '\t', false)
	case "nginx":
		f.kind = textLines
		f.spec, err = parseVariables(body, nil)
	case "regex":
		return parseRegexFiles(body)
	case "apache":
		f.kind = textLines
		f.spec, err = parseApache(body)
	default:
		if outer, ok := formatNamed(prefix); ok && outer.wraps() {
			return parseWrapped(outer, body)
		}
		near := spelling.Nearest(nameOrSpec, Formats(), 2)
		if nameOrSpec == "common" || nameOrSpec == "combined" {
			near = "clf"
		}
		if near != "" {
			return Format{}, fmt.Errorf("accesslog: format %q is unknown; did you mean %s?", nameOrSpec, near)
		}
		return Format{}, fmt.Errorf("accesslog: format %q is unknown; use %s, or a json:, csv:, tsv:, nginx:, apache: or regex: spec",
			nameOrSpec, strings.Join(Formats(), ", "))
	}
	if err != nil && f.kind == textLines { // its text has quotes, and the error says the column
		return Format{}, fmt.Errorf("accesslog: format %s: %w", prefix, err)
	}
	if err != nil {
		return Format{}, fmt.Errorf("accesslog: format %q: %w", nameOrSpec, err)
	}
	f.spec.compile()
	return f, nil
}

// parseWrapped returns a wrapping format with an inner one.
func parseWrapped(outer Format, inner string) (Format, error) {
	f, err := ParseFormat(inner)
	switch {
	case err != nil:
		return Format{}, fmt.Errorf("%w (inside %s)", err, outer)
	case f.wraps(), f.namesColumns():
		return Format{}, fmt.Errorf("accesslog: format %s: %s: must not be inside another format", outer, f)
	}
	return outer.with(f), nil
}

// with returns f with lines of that format inside.
func (f Format) with(inner Format) Format {
	f.inner = &inner
	f.text += ":" + inner.text
	return f
}
