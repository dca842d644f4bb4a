package accesslog_test

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/eventfield"
)

// A slow and obvious reader of each named format: regular expressions over the line as Latin-1 text, and encoding/json. Its
// classes are spelled out, because \s and \S of package regexp differ for Latin-1 text.

// A reading is the content of one line, by the slow reader or by a Parser. An absent field is not in the map, an empty one
// is.
type reading struct {
	ok   bool
	time time.Time

	unknown bool // the slow reader cannot determine it
	fields  map[string]string
}

const (
	field  = `[^\t-\r\x1c-\x20\x{85}\x{a0}]+`
	quoted = `(?:[^"\\]|\\.)*`
)

var (
	clfForm = regexp.MustCompile(`(?s)^ *(` + field + `) (` + field + `) (.+?) ` +
		`\[([0-9]{2}/[A-Z][a-z][a-z]/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4})\] ` +
		`"(` + quoted + `)" ([0-9]{3}) ([0-9]+|-)((?: .*)?)$`)
	vhostForm   = regexp.MustCompile(`^(` + field + `):[0-9]+ `)
	tailForm    = regexp.MustCompile(`(?s)^ "(` + quoted + `)"(?: "(` + quoted + `)")?`)
	clfTimeForm = regexp.MustCompile(`^([0-9]{2})/([A-Z][a-z][a-z])/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2}) ([+-])([0-9]{2})([0-9]{2})$`)
	isoForm     = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))$`)
	sysForm     = regexp.MustCompile(`^([A-Z][a-z][a-z]) +([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) `)
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	methodForm  = regexp.MustCompile(`^([A-Z]+)$`)
)

var monthNames = strings.Fields("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")

// calendarTime lets package time judge the date: a bad one comes back changed.
func calendarTime(year int, month string, day, hour, minute, second string) (time.Time, bool) {
	m := 0
	for i, name := range monthNames {
		if name == month {
			m = i + 1
		}
	}
	d, h, mi, s := number(day), number(hour), number(minute), number(second)
	if s == 60 && mi%15 == 14 { // a leap second
		t, ok := calendarTime(year, month, day, hour, minute, "59")
		return t.Add(time.Second), ok
	}
	t := time.Date(year, time.Month(m), d, h, mi, s, 0, time.UTC)
	return t, m > 0 && year > 0 && t.Year() == year && int(t.Month()) == m && t.Day() == d &&
		t.Hour() == h && t.Minute() == mi && t.Second() == s
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func slowCLFTime(s string) (time.Time, bool) {
	m := clfTimeForm.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	t, ok := calendarTime(number(m[3]), m[2], m[1], m[4], m[5], m[6])
	zone := time.Duration(number(m[8]))*time.Hour + time.Duration(number(m[9]))*time.Minute
	if m[7] == "+" {
		zone = -zone
	}
	return t.Add(zone), ok
}

func slowISOTime(s string) (time.Time, bool) {
	m := isoForm.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	month := number(m[2])
	if month < 1 || month > 12 {
		return time.Time{}, false
	}
	t, ok := calendarTime(number(m[1]), monthNames[month-1], m[3], m[4], m[5], m[6])
	fraction := strings.TrimPrefix(m[7], ".") + "000000000"
	t = t.Add(time.Duration(number(fraction[:9])))
	if m[8] != "" {
		zone := time.Duration(number(m[9]))*time.Hour + time.Duration(number(m[10]))*time.Minute
		if m[8] == "+" {
			zone = -zone
		}
		t = t.Add(zone)
	}
	return t, ok
}

// slowRequest splits at spaces, as the definition of Object does.
func slowRequest(fields map[string]string, request string) {
	tokens := strings.Split(request, " ")
	m := methodForm.FindStringSubmatch(tokens[0])
	if len(tokens) < 2 || m == nil || tokens[1] == "" {
		return
	}
	fields["method"] = m[1]
	path, query, hasQuery := strings.Cut(tokens[1], "?")
	fields["object"], fields["path"] = path, path
	if hasQuery {
		fields["query"] = query
	}
	if len(tokens) > 2 {
		fields["protocol"] = tokens[len(tokens)-1]
	}
}

// logEscape is what nginx and Apache write for a byte of a request.
var logEscape = regexp.MustCompile(`\\x[0-9a-fA-F]{2}|\\[\\"]`)

func slowCLF(line string) (r reading) {
	m := clfForm.FindStringSubmatch(line)
	if m == nil {
		return r
	}
	r.time, r.ok = slowCLFTime(m[4])
	r.fields = map[string]string{"client": slowClient(m[1]), "status": m[6]}
	slowRequest(r.fields, m[5])
	if path, ok := r.fields["path"]; ok {
		r.fields["path"] = logEscape.ReplaceAllStringFunc(path, func(escape string) string {
			if len(escape) == len(`\xHH`) {
				n, _ := strconv.ParseUint(escape[2:], 16, 8)
				return string(rune(n))
			}
			return escape[1:]
		})
	}
	optional := map[string]string{"user": m[3], "size": m[7]}
	_, client := address.Parse(slowClient(m[2]))
	if _, user, ok := strings.Cut(m[3], " "); ok && client && nameForm.MatchString(m[1]) {
		r.fields["host"], r.fields["client"], optional["user"] = m[1], slowClient(m[2]), user
	}
	if tail := tailForm.FindStringSubmatchIndex(m[8]); tail != nil {
		optional["referer"] = m[8][tail[2]:tail[3]]
		if tail[4] >= 0 {
			optional["agent"] = m[8][tail[4]:tail[5]]
		}
	}
	addUnlessDash(r.fields, optional)
	return r
}

func addUnlessDash(fields, more map[string]string) {
	for name, v := range more {
		if v != "-" {
			fields[name] = v
		}
	}
}

func slowQuoted(line string) reading {
	if len(line) >= 2 && strings.HasPrefix(line, `"`) && strings.HasSuffix(line, `"`) {
		return slowCLF(line[1 : len(line)-1])
	}
	return reading{}
}

func slowVHost(line string) reading {
	m := vhostForm.FindStringSubmatch(line)
	if m == nil {
		return reading{}
	}
	r := slowCLF(line[len(m[0]):])
	if r.ok {
		r.fields["host"] = m[1]
	}
	return r
}

// slowSysTime puts the line in the year 2016, which is a leap year.
func slowSysTime(line string) (time.Time, bool) {
	m := sysForm.FindStringSubmatch(line)
	if m == nil {
		return time.Time{}, false
	}
	return calendarTime(2016, m[1], m[2], m[3], m[4], m[5])
}

// slowObject returns the object in the line, nil if it is no object. Package json accepts bad UTF-8, which is bad here.
func slowObject(line string) map[string]any {
	var o map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber() // of any size
	if !utf8.ValidString(line) || !json.Valid([]byte(line)) || d.Decode(&o) != nil {
		return nil
	}
	return o
}

var (
	portForm = regexp.MustCompile(`^(?:\[([^\[\]]+)\](?::[0-9]+)?|(?:::ffff:)?([^\[:]+):[0-9]+)$`)
	zoneForm = regexp.MustCompile("%[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// slowClient removes the port and the brackets of an address.
func slowClient(s string) string {
	m := portForm.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	host := m[1] + m[2]
	if strings.HasPrefix(s, "::ffff:") && !strings.Contains(host, ".") {
		return s
	}
	plain := zoneForm.ReplaceAllString(host, "")
	if a, err := netip.ParseAddr(plain); err != nil || plain != host && a.Is4() {
		return s
	}
	return host
}

func slowNginx(line string) (r reading) {
	o := slowObject(line)
	client, ok1 := o["remote_addr"].(string)
	at, ok2 := o["time_local"].(string)
	request, ok3 := o["request"].(string)
	if !ok1 || !ok2 || !ok3 {
		return r
	}
	r.time, r.ok = slowCLFTime(at)
	r.fields = map[string]string{"client": slowClient(client)}
	slowRequest(r.fields, request)
	return r
}

func slowZeek(line string) (r reading) {
	o := slowObject(line)
	client, ok1 := o["id.orig_h"].(string)
	at, ok2 := o["ts"].(string)
	if !ok1 || !ok2 {
		return r
	}
	r.time, r.ok = slowISOTime(at)
	r.fields = map[string]string{"client": slowClient(client)}
	if query, ok := o["query"].(string); ok && query != "" {
		r.fields["object"] = query
	}
	return r
}

// slowReaders are the readers by format, with the fields that each reads.
var slowReaders = map[string]struct {
	read  func(line string) reading
	latin bool // read wants Latin-1 text
	knows []string
}{
	"clf":           {slowCLF, true, eventfield.WellKnown()},
	"clf-quoted":    {slowQuoted, true, eventfield.WellKnown()},
	"clf-vhost":     {slowVHost, true, eventfield.WellKnown()},
	"json-nginx":    {slowNginx, false, []string{"client", "object", "method", "path", "query", "protocol"}},
	"json-zeek-dns": {slowZeek, false, eventfield.WellKnown()},
	"traefik":       {slowTraefik, true, moreFields},
	"envoy":         {slowEnvoy, true, moreFields},
	"haproxy":       {slowHAProxy, true, moreFields},
	"alb":           {slowALB, true, moreFields},
	"elb":           {slowELB, true, moreFields},
	"s3":            {slowS3, true, moreFields},
	"cloudfront":    {slowCloudFront, true, moreFields},
	"caddy":         {slowCaddy, false, moreFields},
	"traefik-json":  {slowTraefikJSON, false, moreFields},
	"envoy-json":    {slowEnvoyJSON, false, moreFields},
}
