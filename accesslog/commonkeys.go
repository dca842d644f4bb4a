package accesslog

import (
	"bytes"
	"strings"

	"github.com/lately-go/lately/match"
)

// Logs of objects and of pairs whose programs use one of the usual names for the time and the
// client: JSON, and key=value as logfmt writes it.

// commonKeys are the usual names of fields; a '.' stands between a key and one in its object.
// The first that a line has counts.
var commonKeys = []struct{ field, keys string }{
	{"time", "time timestamp @timestamp ts eventTime t t.$date datetime asctime start_time requestReceivedTimestamp"},
	{"date", "date"},
	{"client", "client_ip clientip clientIp client_addr remote_ip remote_addr remoteAddr remoteAddress remoteIP remoteip source_ip sourceIP sourceIPAddress src_ip srcip remip " +
		"ip_address ipAddress ip request_ip visitor_ip c-ip addr attr.remote req.remoteAddress client.ip ipaddr src"},
	{"user", "user username user_name userName uname"},
	{"method", "method http_method cs-method requestMethod"},
	{"path", "path http_path uri url cs-uri-stem request_uri requestURI"},
	{"status", "status statusCode httpStatus http_status sc-status"},
	{"agent", "user_agent userAgent agent cs(User-Agent)"},
	{"host", "host hostname vhost cs(Host)"},
	{"reason", "msg message event eventid eventName action"},
}

var (
	commonJSON = Format{text: "json", kind: &lineKind{parse: (*Parser).commonJSON, fields: commonFields()}, spec: commonSpec()}
	logfmt     = Format{text: "logfmt", kind: &lineKind{parse: (*Parser).logfmt, fields: commonFields()}, spec: commonSpec()}

	logfmtKeys = commonIndexes()
)

// The fields with a meaning of their own. The values of a line are at the indexes of the fields.
const (
	commonTime = iota
	commonDate
	commonClient
)

// commonFields returns the names of the fields of an event.
func commonFields() (names []string) {
	for _, c := range commonKeys[commonClient:] {
		names = append(names, c.field)
	}
	return append(names, "query", "object")
}

// commonSpec has a want for each key, in their order.
func commonSpec() *spec {
	s := &spec{unit: unitCommon}
	for _, c := range commonKeys {
		for key := range strings.FieldsSeq(c.keys) {
			s.wants = append(s.wants, want{name: c.field, path: strings.Split(key, ".")})
		}
	}
	return s.compile()
}

// commonIndexes returns the index of the field of each key.
func commonIndexes() map[string]int {
	indexes := make(map[string]int)
	for i, c := range commonKeys {
		for key := range strings.FieldsSeq(c.keys) {
			indexes[key] = i
		}
	}
	return indexes
}

// commonJSON reads an object with a time and an address under usual names.
func (p *Parser) commonJSON(line []byte, ev *match.Event) bool {
	if len(line) == 0 || line[0] != '{' || !p.reader.read(line) {
		return false
	}
	p.scratch = p.scratch[:0]
	clear(p.values)
	field := 0
	for i := range p.spec.wants {
		if p.spec.wants[i].name != commonKeys[field].field {
			field++
		}
		p.useCommon(field, i)
	}
	return p.setCommon(ev)
}

// useCommon makes the value of a want that of its field, unless that has one.
func (p *Parser) useCommon(field, i int) {
	if v := p.reader.values[i]; len(p.values[field]) == 0 && (v.kind == jsonString || v.kind == jsonNumber) {
		p.values[field], p.scratch = p.reader.appendText(p.scratch, v)
		if field == commonClient && !isAddress(clientAddress(p.values[field])) {
			p.values[field] = nil
		}
	}
}

// logfmt reads pairs key=value with blanks between, of which a time and an address have usual
// names. Values may be in quotes. A program that was set to JSON later has lines of both kinds.
func (p *Parser) logfmt(line []byte, ev *match.Event) bool {
	if len(line) > 0 && line[0] == '{' {
		return p.commonJSON(line, ev)
	}
	clear(p.values)
	for rest := line; len(rest) > 0; {
		key, value, ok := bytes.Cut(rest, []byte("="))
		if !ok || bytes.IndexByte(key, '"') >= 0 {
			return false
		}
		key = key[bytes.LastIndexByte(key, ' ')+1:]
		value, rest, ok = cutValue(value)
		if !ok {
			return false
		}
		i, known := logfmtKeys[string(key)]
		if known && len(p.values[i]) == 0 && (i != commonClient || isAddress(clientAddress(value))) {
			p.values[i] = value
		}
		rest = bytes.TrimLeft(rest, " ,")
	}
	return p.setCommon(ev)
}

// cutValue cuts a value, maybe in quotes, off a text.
func cutValue(s []byte) (value, rest []byte, ok bool) {
	if len(s) > 0 && s[0] == '"' {
		end := quoteEnd(s, 1)
		if end < 0 {
			return nil, nil, false
		}
		return s[1:end], s[end+1:], true
	}
	value, rest, _ = bytes.Cut(s, []byte(" "))
	return value, rest, true
}

// setCommon sets ev to the values of the fields. A line without an address is of another kind.
func (p *Parser) setCommon(ev *match.Event) bool {
	v := p.values
	if clock := v[commonTime]; len(v[commonDate]) == len("2018-04-17") && len(clock) == len("06:25:06") {
		p.scratch = append(append(append(p.scratch, v[commonDate]...), ' '), clock...)
		v[commonTime] = p.scratch[len(p.scratch)-len("2018-04-17 06:25:06"):]
	}
	sec, nsec, ok := p.time(v[commonTime])
	if !ok {
		return false
	}
	if v[commonClient] == nil {
		p.skipped = true
		return false
	}
	ev.Time = utc(sec, nsec)
	for i, c := range commonKeys[commonClient:] {
		switch value := v[commonClient+i]; {
		case len(value) == 0 || string(value) == "-" || string(value) == "--":
		case c.field == "client":
			ev.Set(match.Client, clientAddress(value))
		case c.field == "path":
			ev.SetTarget(text(value))
		default:
			ev.SetNamed(c.field, value)
		}
	}
	return true
}

// readCommon reads a time of a number of seconds, milliseconds or nanoseconds, or of one of the
// forms of readStamp. A time without a zone is UTC.
func readCommon(text []byte) (sec, nsec int64, ok bool) {
	if digits, _ := leadingDigits(text); len(digits) >= len("1523946306") {
		return readDecimal(text, min(len(digits)-len("1523946306"), 9))
	}
	s, ok := readStamp(text)
	return s.sec, s.nsec, ok && s.end == len(text)
}
