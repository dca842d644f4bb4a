package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Nginx reads the limits of a configuration of nginx: limit_req_zone with limit_req, and
// limit_conn_zone with limit_conn. Each limit_req becomes a limit that admits and refuses the
// same requests; it is in shadow mode if it would hold for more requests than there. A
// limit_conn becomes a template, because nginx knows when a connection ends.
func Nginx(files ...Source) *Result {
	b := &builder{header: []string{
		"From nginx. Rules count all requests that have their fields: a rule with a host needs events, or a log format, with one.",
	}}
	n := &nginx{builder: b, zones: map[string]*nginxZone{}, used: map[string]place{}}
	var all []*directive
	for _, f := range files {
		all = append(all, b.readNginx(f)...)
	}
	n.walk(all, n.zone)
	n.walk(all, n.limit)
	for _, name := range n.order {
		if z := n.zones[name]; n.used[name] == (place{}) {
			n.note(z.place, "zone %s: no %s uses it", name, strings.TrimSuffix(z.words[0], "_zone"))
		}
	}
	return b.result()
}

type nginx struct {
	*builder
	zones map[string]*nginxZone
	order []string
	used  map[string]place
	wider bool // a condition of the present limit cannot be expressed
}

// A nginxZone is a limit_req_zone or a limit_conn_zone.
type nginxZone struct {
	*directive
	fields []string // of the key; nil if it cannot be expressed
	rate   string   // such as 10 per 1s
}

// walk calls f for all directives.
func (n *nginx) walk(block []*directive, f func(*directive)) {
	for _, d := range block {
		if len(d.words) > 0 {
			f(d)
		}
		n.walk(d.block, f)
	}
}

// nginxRate is a rate in limit_req_zone.
var nginxRate = regexp.MustCompile(`^rate=([1-9][0-9]{0,8})r/([sm])$`)

// zone notes a zone, and what of a file is not read.
func (n *nginx) zone(d *directive) {
	switch d.words[0] {
	case "include":
		n.note(d.place, "include %s: read only if its files are in the input, as nginx -T prints them, and not as a part of this block", strings.Join(d.words[1:], " "))
		return
	case "limit_req_zone", "limit_conn_zone":
	default:
		return
	}
	z, name := &nginxZone{directive: d}, ""
	for i, word := range d.words[1:] {
		value, isZone := strings.CutPrefix(word, "zone=")
		rate := nginxRate.FindStringSubmatch(word)
		switch {
		case i == 0:
			z.fields = nginxFields(word)
			if z.fields == nil {
				n.note(d.place, "%s: %s: not a field of Lately: no rule is made for this zone", d.words[0], word)
			}
		case isZone:
			name, _, _ = strings.Cut(value, ":")
		case rate != nil:
			z.rate = rate[1] + " per 1" + rate[2]
		case word != "sync":
			n.note(d.place, "%s: %q: unknown", d.words[0], word)
		}
	}
	if name == "" {
		n.note(d.place, "%s: zone: missing", d.words[0])
		return
	}
	if d.words[0] == "limit_req_zone" && z.rate == "" && z.fields != nil {
		n.note(d.place, "limit_req_zone: rate: missing, or not such as rate=10r/s")
		z.fields = nil
	}
	if n.zones[name] == nil {
		n.order = append(n.order, name)
	}
	n.zones[name] = z
}

// nginxVariables are the variables that are fields of an event.
var nginxVariables = map[string]string{
	"binary_remote_addr": "client", "remote_addr": "client", "remote_user": "user", "host": "host", "http_host": "host",
	"uri": "path", "document_uri": "path", "request_uri": "object", "request_method": "method", "http_user_agent": "agent", "http_referer": "referer",
}

// nginxName is one variable in a key, with what may stand between two.
var nginxName = regexp.MustCompile(`^[:|/,;_ -]*\$(?:([a-z_]+)|\{([a-z_]+)\})`)

// nginxFields returns the fields of a key, or nil.
func nginxFields(key string) (fields []string) {
	for key != "" {
		m := nginxName.FindStringSubmatch(key)
		if m == nil {
			return nil
		}
		field := nginxVariables[m[1]+m[2]]
		if field == "" || slices.Contains(fields, field) {
			return nil
		}
		fields = append(fields, field)
		key = key[len(m[0]):]
	}
	return fields
}

// limit makes a rule of a limit_req or a limit_conn.
func (n *nginx) limit(d *directive) {
	kind := d.words[0]
	if kind != "limit_req" && kind != "limit_conn" {
		return
	}
	name, rest := "", d.words[1:]
	if len(rest) > 0 {
		name, rest = strings.TrimPrefix(rest[0], "zone="), rest[1:]
	}
	z := n.zones[name]
	if z == nil || z.words[0] != kind+"_zone" {
		n.note(d.place, "%s: zone %q: no %s_zone has this name", kind, name, kind)
		return
	}
	if first := n.used[name]; first != (place{}) {
		n.note(d.place, "%s: zone %s: shared with %v there; here each rule counts by itself", kind, name, first)
	}
	n.used[name] = d.place
	if z.fields == nil {
		n.note(d.place, "%s: zone %s: not imported, see %v", kind, name, z.place)
		return
	}
	n.replaces(d)
	n.wider = false
	when, where := n.when(d)
	mode := ""
	if n.wider || n.dryRun(d) {
		mode = ", mode: shadow"
	}
	if kind == "limit_conn" {
		n.connections(d, z, name, when+mode)
		return
	}
	burst, waits := n.burst(d, rest)
	algorithm := "gcra"
	if waits && burst > 0 {
		algorithm = "leaky-bucket"
		n.note(d.place, "limit_req: without nodelay, nginx makes requests wait: leaky-bucket answers how long the caller must wait; behind a proxy that cannot, use gcra")
	}
	n.add(d.place, &n.limits, fmt.Sprintf("%v: limit_req zone=%s%s", d.place, name, where),
		fmt.Sprintf("{name: %s, key: [%s]%s, limit: %s burst %d, algorithm: %s%s}", quoted(n.name(name)), strings.Join(z.fields, ", "), when, z.rate, burst+1, algorithm, mode))
}

// burst returns the burst of a limit_req, and whether requests within it wait.
func (n *nginx) burst(d *directive, words []string) (burst int, waits bool) {
	const most = 1 << 30
	waits = true
	for _, word := range words {
		value, isBurst := strings.CutPrefix(word, "burst=")
		delay, isDelay := strings.CutPrefix(word, "delay=")
		switch {
		case word == "nodelay":
			waits = false
		case isDelay:
			waits = false
			n.note(d.place, "limit_req: delay=%s: later ones of the burst do not wait here: the same requests are refused", delay)
		case isBurst:
			v, err := strconv.Atoi(value)
			if err != nil || v < 0 || v > most {
				n.note(d.place, "limit_req: burst=%s: must be a number from 0 to %d: taken as none", value, most)
				v = 0
			}
			burst = v
		default:
			n.note(d.place, "limit_req: %q: unknown", word)
		}
	}
	return burst, waits
}

// connections adds a template for a limit_conn.
func (n *nginx) connections(d *directive, z *nginxZone, name, rest string) {
	count := d.words[len(d.words)-1]
	v, err := strconv.ParseUint(count, 10, 16)
	if err != nil || len(d.words) != 3 {
		n.note(d.place, "limit_conn: %q: must be a number from 0 to 65535: not imported", count)
		return
	}
	n.note(d.place, "limit_conn: a template only: callers must release what they hold, and a rule needs the longest time that a request may take")
	n.limits = append(n.limits, entry{comments: []string{
		fmt.Sprintf("%v: limit_conn %s %d: replace DURATION by the longest time that a request may take", d.place, name, v),
		fmt.Sprintf("- {name: %s, key: [%s], limit: %d at once for DURATION, algorithm: in-flight%s}", quoted(n.name(name)), strings.Join(z.fields, ", "), v, rest),
	}})
}

// replaces notes an outer directive of the same name, which does not hold beside d.
func (n *nginx) replaces(d *directive) {
	for outer := d.in; outer.in != nil; outer = outer.in {
		for _, other := range outer.in.block {
			if len(other.words) > 0 && other.words[0] == d.words[0] {
				n.note(d.place, "%s: replaces that of line %d in this block; here both hold", d.words[0], other.line)
				return
			}
		}
	}
}

// dryRun reports whether the innermost limit_req_dry_run, or that of limit_conn, is on.
func (n *nginx) dryRun(d *directive) bool {
	for in := d.in; in != nil; in = in.in {
		for _, other := range in.block {
			if len(other.words) == 2 && other.words[0] == d.words[0]+"_dry_run" {
				return other.words[1] == "on"
			}
		}
	}
	return false
}

// when returns the condition of a rule, which is that of the blocks around d, and the same
// for a comment.
func (n *nginx) when(d *directive) (when, where string) {
	var conditions []string
	for in := d.in; in != nil && len(in.words) > 0; in = in.in {
		switch in.words[0] {
		case "server":
			conditions = append(conditions, n.hosts(in)...)
		case "location":
			conditions = append(conditions, n.path(d, in)...)
		case "http":
			continue
		default:
			n.note(d.place, "%s: in the block %q: not a condition of a rule: in shadow mode", d.words[0], in.words[0])
			n.wider = true
		}
		where += fmt.Sprintf(", in %s of line %d", strings.Join(in.words, " "), in.line)
	}
	return whenAll(conditions), where
}

// path returns the condition of a location.
func (n *nginx) path(d, location *directive) []string {
	words := location.words[1:]
	exact := len(words) == 2 && words[0] == "="
	prefix := len(words) == 1 || len(words) == 2 && words[0] == "^~"
	path := words[max(len(words)-1, 0):]
	switch {
	case !exact && !prefix, len(path) == 0, !strings.HasPrefix(path[0], "/"), strings.Contains(path[0], "*"), !utf8.ValidString(path[0]):
		n.note(d.place, "%s: location %s: not a condition of a rule: in shadow mode, for all paths", d.words[0], strings.Join(words, " "))
		n.wider = true
		return nil
	case exact:
		return []string{"path: " + quoted(path[0])}
	}
	for _, other := range location.in.block {
		if other != location && len(other.words) > 1 && other.words[0] == "location" {
			if to := other.words[len(other.words)-1]; strings.HasPrefix(other.words[1], "~") || strings.HasPrefix(to, path[0]) {
				n.note(d.place, "%s: the location of line %d takes a part of the requests of this one; here the rule holds for them, too", d.words[0], other.line)
				break
			}
		}
	}
	if path[0] == "/" {
		return nil
	}
	return []string{"path: " + quoted(path[0]+"**")}
}

// hosts returns the condition of a server.
func (n *nginx) hosts(server *directive) []string {
	var hosts []string
	for _, d := range server.block {
		if len(d.words) == 0 || d.words[0] != "server_name" {
			continue
		}
		for _, name := range d.words[1:] {
			switch {
			case name == "", name == "_", strings.HasPrefix(name, "~"), !utf8.ValidString(name):
				n.note(d.place, "server_name %q: not a condition of a rule: in shadow mode, for all hosts", name)
				n.wider = true
				return nil
			case strings.HasPrefix(name, "."):
				hosts = append(hosts, quoted(name[1:]), quoted("*"+name))
			default:
				hosts = append(hosts, quoted(name))
			}
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return []string{"host: [" + strings.Join(hosts, ", ") + "]"}
}
