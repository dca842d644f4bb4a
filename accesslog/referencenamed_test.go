package accesslog_test

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/eventfield"
)

// The slow readers of the formats that are written as templates, maps of JSON keys, or
// columns: each has its line spelled out as regular expressions. Where a value ends at
// the first occurrence of a text, an expression ends, so that nothing is tried again.

// moreFields are the fields of the slow readers below.
var moreFields = append(eventfield.WellKnown(), "duration", "x_forwarded_for", "router", "frontend", "backend", "termination", "bucket", "operation")

const (
	word    = `([^ ]*) `
	numeral = `(-|[-+]?[0-9.]+)`
	stamp   = `(../.../....:.{14})`
)

// phases matches text with one expression after the other, each from where the last one
// ended, and returns all groups.
func phases(text string, expressions ...string) (groups []string, rest string, ok bool) {
	for _, e := range expressions {
		m := slowForm(`(?s)^` + e).FindStringSubmatchIndex(text)
		if m == nil {
			return nil, text, false
		}
		for i := 2; i < len(m); i += 2 {
			groups = append(groups, text[m[i]:m[i+1]])
		}
		text = text[m[1]:]
	}
	return groups, text, true
}

var slowForms = map[string]*regexp.Regexp{}

// slowForm compiles an expression once. The slow readers run in one goroutine.
func slowForm(e string) *regexp.Regexp {
	if slowForms[e] == nil {
		slowForms[e] = regexp.MustCompile(e)
	}
	return slowForms[e]
}

// slowNamed returns the reading of a line whose values have these names. "-" means a value without a name.
func slowNamed(at time.Time, ok bool, names string, values []string) (r reading) {
	if !ok {
		return r
	}
	r = reading{ok: true, time: at, fields: map[string]string{}}
	for i, name := range strings.Fields(names) {
		if v := values[i]; name != "_" && v != "-" && name != "request" && name != "url" {
			r.fields[name] = v
		} else if name == "request" || name == "url" {
			slowRequest(r.fields, v)
		}
		if name == "url" {
			slowURL(r.fields)
		}
	}
	return r
}

// finish removes ports, and what servers escape from the path.
func (r reading) finish() reading {
	if client, ok := r.fields["client"]; ok {
		r.fields["client"] = slowClient(client)
	}
	if path, ok := r.fields["path"]; ok {
		r.fields["path"] = logEscape.ReplaceAllStringFunc(path, func(escape string) string {
			if len(escape) == len(`\xHH`) {
				return string(rune(hexByte(escape[2:])))
			}
			return escape[1:]
		})
	}
	return r
}

func hexByte(s string) (n byte) {
	for _, c := range strings.ToLower(s) {
		n = n<<4 | byte(strings.IndexRune("0123456789abcdef", c))
	}
	return n
}

// slowHost removes the port of a host, and brackets.
func slowHost(s string) string {
	s = slowForm(`(?s)^((?:[^:\[][^:]*)?):[0-9]+$`).ReplaceAllString(s, "$1")
	return slowForm(`(?s)^\[([^\]]+)\](?::[0-9]+)?$`).ReplaceAllString(s, "$1")
}

// slowURL moves scheme and host of the object to the host.
func slowURL(fields map[string]string) {
	if m := slowForm(`(?s)^[^/]*?://([^/]*)(.*)$`).FindStringSubmatch(fields["object"]); m != nil {
		fields["host"] = slowHost(m[1])
		fields["object"], fields["path"] = m[2], m[2]
	}
}

// slowForwarded takes the last of a list as the client.
func slowForwarded(r reading) reading {
	list, ok := r.fields["client"]
	if !ok {
		return r
	}
	delete(r.fields, "client")
	all := strings.Split(list, ",")
	if client := strings.Trim(all[len(all)-1], " \t"); client != "" {
		r.fields["client"] = client
	}
	if before := strings.Join(all[:len(all)-1], ","); before != "" {
		r.fields["x_forwarded_for"] = before
	}
	return r
}

// slowSeconds makes seconds of a number of units of 10^-scale seconds, and removes
// other characters.
func slowSeconds(r reading, scale int) reading {
	text, ok := r.fields["duration"]
	if !ok {
		return r
	}
	delete(r.fields, "duration")
	m := slowForm(`(?s)^\+?([0-9]+)(.*)$`).FindStringSubmatch(text)
	switch {
	case m == nil:
	case scale == 0:
		r.fields["duration"] = m[1] + m[2]
	case m[2] == "" || slowForm(`^\.[0-9]+$`).MatchString(m[2]):
		digits := strings.Repeat("0", max(0, scale+1-len(m[1]))) + m[1]
		point := len(digits) - scale
		r.fields["duration"] = strings.TrimRight(strings.TrimRight(digits[:point]+"."+digits[point:]+strings.TrimPrefix(m[2], "."), "0"), ".")
	}
	return r
}

func slowTraefik(line string) reading {
	v, rest, ok := phases(line, `(.*?) - `, `(.*?) \[`+stamp+`\] "`, `(`+quoted+`)" `+numeral+` `+numeral+
		` "(`+quoted+`)" "(`+quoted+`)" `, `(.*?) "`, `(`+quoted+`)" "(`+quoted+`)" `+numeral+`ms`)
	if !ok || strings.TrimSuffix(rest, "x") == "never" {
		return reading{}
	}
	at, ok := slowCLFTime(v[2])
	r := slowNamed(at, ok, "client user _ request status size referer agent _ router _ duration", v)
	return slowSeconds(slowForwarded(r).finish(), 3)
}

func slowEnvoy(line string) reading {
	v, _, ok := phases(line, `\[(.*?)\] "`, `(`+quoted+`)" `+numeral+` `+word+word+numeral+` `+numeral+` `, `(.*?) "`,
		`(`+quoted+`)" "(`+quoted+`)" "(`+quoted+`)" "(`+quoted+`)" "(`+quoted+`)"`)
	if !ok {
		return reading{}
	}
	at, ok := slowISOTime(v[0])
	r := slowNamed(at, ok, "_ request status _ _ size duration _ client agent _ host _", v)
	return slowSeconds(slowForwarded(r).finish(), 3)
}

// slowPeer removes the port, which is always there.
func slowPeer(s string) string {
	i := strings.LastIndexByte(s, ':')
	if host := slowClient(s); host != s || i < 1 {
		return host
	}
	if _, ok := address.Parse(s[:i]); ok {
		return s[:i]
	}
	return s
}

func slowHAProxy(line string) reading {
	if m := slowForm(`(?s)^.*? haproxy\[`).FindString(line); m != "" {
		if n := slowForm(`^[0-9]+\]: `).FindString(line[len(m):]); n != "" {
			line = line[len(m)+len(n):]
		}
	} else if _, dated := slowSysTime(line); dated {
		return reading{}
	}
	v, _, ok := phases(line, `(.*?) \[`, `(.*?)\] `, word+word+`([^/]*)/([^/]*)/([^/]*)/([^/]*)/`+numeral+` `+numeral+` `+numeral+` `+word+word+word+word, `(.*?) "`, `(`+quoted+`)"`)
	if !ok {
		return reading{}
	}
	m := slowForm(`^(.{20})((?:\.[0-9]+)?)$`).FindStringSubmatch(v[1])
	if m == nil {
		return reading{}
	}
	at, ok := slowCLFTime(m[1] + " +0000")
	at = at.Add(time.Duration(number((strings.TrimPrefix(m[2], ".") + "000000000")[:9])))
	r := slowNamed(at, ok, "client _ frontend backend _ _ _ _ duration status size _ _ termination _ _ request", v)
	r = slowSeconds(r.finish(), 3)
	if r.ok {
		r.fields["client"] = slowPeer(v[0])
	}
	return r
}

func slowALB(line string) reading {
	v, rest, ok := phases(line, word+word+word+word+word+word+numeral+` `+word+numeral+` `+word+word+numeral+` "(`+quoted+`)" "(`+quoted+`)"`)
	if !ok {
		return reading{}
	}
	at, ok := slowISOTime(v[1])
	r := slowNamed(at, ok, "_ _ _ client _ _ duration _ status _ _ size url agent", v)
	if more, _, found := phases(rest, ` `+word+word, `(.*?) "`, `(`+quoted+`)" "(`+quoted+`)"`); found && r.ok && more[4] != "-" {
		r.fields["host"] = more[4]
	}
	return slowSeconds(r.finish(), 0)
}

func slowELB(line string) reading {
	v, rest, ok := phases(line, word+word+word+word+word+numeral+` `+word+numeral+` `+word+word+numeral+` "(`+quoted+`)"`)
	if !ok || v[len(v)-1] == "- - - " {
		return reading{}
	}
	at, ok := slowISOTime(v[0])
	r := slowNamed(at, ok, "_ _ client _ _ duration _ status _ _ size url", v)
	if more, _, found := phases(rest, ` "(`+quoted+`)"`); found && r.ok && more[0] != "-" {
		r.fields["agent"] = more[0]
	}
	return slowSeconds(r.finish(), 0)
}

func slowS3(line string) reading {
	v, rest, ok := phases(line, word, `(.*?) \[`+stamp+`\] `, word+word+word+word, `(.*?) "`, `(`+quoted+`)" `+numeral+` `+word+numeral+` `+word+numeral+` `, `(.*?) "`,
		`(`+quoted+`)" "(`+quoted+`)"`)
	if !ok {
		return reading{}
	}
	at, ok := slowCLFTime(v[2])
	r := slowNamed(at, ok, "_ bucket _ client user _ operation _ request status _ size _ duration _ referer agent", v)
	if more, _, found := phases(rest, ` `+word+word+word+word+word+`([^ ]*)`); found && r.ok && more[5] != "-" {
		r.fields["host"] = more[5]
	}
	return slowSeconds(r.finish(), 3)
}

func slowCloudFront(line string) reading {
	var v []string
	cell := slowForm(`^[ \t]*(?:"((?:[^"]|"")*)"|([^ \t"][^ \t]*))`)
	for rest := line; strings.Trim(rest, " \t") != ""; {
		m := cell.FindStringSubmatch(rest)
		if m == nil && len(v) < 19 {
			return reading{}
		}
		if len(v) == 19 {
			break // no reader uses more
		}
		v = append(v, strings.ReplaceAll(m[1], `""`, `"`)+m[2])
		if rest = rest[len(m[0]):]; strings.HasSuffix(m[0], `"`) && m[2] == "" && strings.HasPrefix(rest, `"`) {
			return reading{} // half of two quotes: nothing ends the value
		}
	}
	if len(v) < 19 || strings.HasPrefix(line, "#") || !strings.Contains(line, "\t") {
		return reading{}
	}
	at, ok := slowISOTime(v[0] + "T" + v[1] + "Z")
	r := slowNamed(at, ok, "_ _ _ size client method host _ status referer agent _ _ _ _ _ _ _ duration", v)
	if !r.ok {
		return r
	}
	if v[15] != "-" {
		r.fields["host"] = v[15]
	} else {
		delete(r.fields, "host")
	}
	return slowSeconds(slowURI(r, v[7], v[11]).finishClient(), 0)
}

// slowURI sets what a target with or without a host gives.
func slowURI(r reading, uri, query string) reading {
	if query != "-" {
		defer func() { r.fields["query"] = query }()
	}
	if uri == "" {
		return r
	}
	path, own, has := strings.Cut(uri, "?")
	if has {
		r.fields["query"] = own
	}
	if m := slowForm(`(?s)^(?:[^/]*?://([^/]*)|([^/]+))(.*)$`).FindStringSubmatch(path); m != nil {
		if _, given := r.fields["host"]; !given {
			r.fields["host"] = slowHost(m[1] + m[2])
		}
		path = m[3]
	}
	r.fields["object"], r.fields["path"] = path, path
	return r
}

func (r reading) finishClient() reading {
	if client, ok := r.fields["client"]; ok {
		r.fields["client"] = slowClient(client)
	}
	return r
}

// slowKeys reads the text at each path. The first path of a field that has one, and not
// an empty one, counts; "[]" takes the first element of a list.
func slowKeys(line string, fields map[string][]string) map[string]string {
	if slowObject(line) == nil {
		return nil
	}
	found := make(map[string]string)
	for name, paths := range fields {
		for _, path := range paths {
			path, first := strings.CutSuffix(path, "[]")
			v, ok := slowFind([]byte(line), strings.Split(path, "|"))
			if list, isList := v.([]any); first && isList && len(list) > 0 {
				v = list[0]
			} else if isList {
				ok = false
			}
			if _, isObject := v.(map[string]any); !ok || v == nil || isObject {
				continue
			}
			if _, isList := v.([]any); isList {
				continue
			}
			if old, given := found[name]; !given || old == "" || old == "-" && slices.Contains([]string{"host", "agent", "x_forwarded_for"}, name) {
				found[name] = textOf(v)
			}
		}
	}
	return found
}

// slowTarget makes object, path and query of the path.
func slowTarget(fields map[string]string) {
	path, ok := fields["path"]
	delete(fields, "path")
	if !ok || path == "" {
		return
	}
	path, query, has := strings.Cut(path, "?")
	fields["object"], fields["path"] = path, path
	if has {
		fields["query"] = query
	}
}

// slowJSON is the reading of an object with these fields; time is one of them.
func slowJSON(found map[string]string, scale int, dashes ...string) reading {
	at, ok := slowISOTime(slowForm(`([+-][0-9]{2})([0-9]{2})$`).ReplaceAllString(found["time"], "$1:$2"))
	if m := slowForm(`^([0-9]{1,11})((?:\.[0-9]+)?)$`).FindStringSubmatch(found["time"]); m != nil && scale == 0 {
		at, ok = time.Unix(int64(number(m[1])), int64(number((strings.TrimPrefix(m[2], ".") + "000000000")[:9]))).UTC(), true
	} else if !ok && scale == 0 {
		return reading{unknown: true} // another number, perhaps
	}
	if !ok {
		return reading{}
	}
	delete(found, "time")
	for _, name := range dashes {
		if found[name] == "-" {
			delete(found, name)
		}
	}
	slowTarget(found)
	return slowSeconds(reading{ok: true, time: at, fields: found}, scale)
}

func slowCaddy(line string) reading {
	found := slowKeys(line, map[string][]string{
		"time": {"ts"}, "client": {"request|client_ip", "request|remote_ip", "request|remote_addr"}, "path": {"request|uri"},
		"method": {"request|method"}, "protocol": {"request|proto"}, "host": {"request|host"}, "referer": {"request|headers|Referer[]"},
		"agent": {"request|headers|User-Agent[]"}, "x_forwarded_for": {"request|headers|X-Forwarded-For[]"}, "user": {"user_id"},
		"status": {"status"}, "size": {"size"}, "duration": {"duration"}, "msg": {"msg"},
	})
	if found["msg"] != "handled request" {
		return reading{}
	}
	delete(found, "msg")
	return slowJSON(found, 0).finishClient()
}

func slowTraefikJSON(line string) reading {
	found := slowKeys(line, map[string][]string{
		"time": {"StartUTC"}, "host": {"RequestHost"}, "path": {"RequestPath"}, "method": {"RequestMethod"}, "protocol": {"RequestProtocol"},
		"user": {"ClientUsername"}, "referer": {"request_Referer"}, "agent": {"request_User-Agent"}, "x_forwarded_for": {"request_X-Forwarded-For"},
		"status": {"DownstreamStatus"}, "size": {"DownstreamContentSize"}, "duration": {"Duration"}, "router": {"RouterName"},
	})
	if _, ok := found["method"]; !ok {
		return reading{}
	}
	if strings.HasSuffix(found["time"], "00") && !strings.HasSuffix(found["time"], ":00") {
		return reading{unknown: true}
	}
	clients := slowKeys(line, map[string][]string{"client": {"ClientHost"}, "address": {"ClientAddr"}})
	r := slowJSON(found, 9, "user")
	if !r.ok {
		return r
	}
	forwarded := slowForwarded(reading{fields: map[string]string{"client": clients["client"]}}).fields
	if forwarded["client"] != "" {
		r.fields["client"] = forwarded["client"]
	} else if address, ok := clients["address"]; ok {
		r.fields["client"] = address
	}
	if before, ok := forwarded["x_forwarded_for"]; ok {
		if _, own := found["x_forwarded_for"]; !own {
			r.fields["x_forwarded_for"] = before
		}
	}
	return r.finishClient()
}

func slowEnvoyJSON(line string) reading {
	found := slowKeys(line, map[string][]string{
		"time": {"start_time"}, "client": {"downstream_remote_address"}, "path": {"x-envoy-origin-path", "path", ":path"},
		"method": {"method", ":method"}, "protocol": {"protocol"}, "host": {":authority", "authority"}, "agent": {"user-agent", "user_agent"},
		"x_forwarded_for": {"x-forwarded-for", "x_forwarded_for"}, "status": {"response_code"}, "size": {"bytes_sent"}, "duration": {"duration"},
	})
	_, ok1 := found["client"]
	_, ok2 := found["status"]
	if !ok1 || !ok2 {
		return reading{}
	}
	return slowJSON(found, 3, "client", "host", "agent", "x_forwarded_for").finishClient()
}
