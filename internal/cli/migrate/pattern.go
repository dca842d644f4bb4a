package migrate

import (
	"regexp"
	"strings"

	"github.com/lately-go/lately/accesslog"
)

const beginOfLine = "{^LN-BEG}"

// timeOf returns a datepattern as a time of a file of patterns.
func timeOf(text string) string {
	rest, atBegin := strings.CutPrefix(text, beginOfLine)
	rest = strings.TrimPrefix(strings.ReplaceAll(rest, "**", ""), "{UNB}")
	switch upper := strings.ToUpper(rest); upper {
	case "":
		rest = "{DATE}"
	case "EPOCH", "LEPOCH", "TAI64N":
		rest = "{" + upper + "}"
	}
	rest = exactDirective.ReplaceAllString(rest, "%$1")
	rest = dateTags.ReplaceAllStringFunc(rest, func(tag string) string {
		switch strings.ToUpper(tag) {
		case "{DATE}":
			return "{DATE}"
		case "{TAI64N}":
			return "@(?P<tai>[0-9a-f]{24})"
		}
		return "%s"
	})
	switch {
	case atBegin && !unnamedGroup.MatchString(rest):
		return `^\W{0,2}(` + rest + ")"
	case atBegin:
		return `^\W{0,2}` + rest
	}
	return rest
}

var (
	exactDirective = regexp.MustCompile(`%Ex([a-zA-Z])`)
	dateTags       = regexp.MustCompile(`(?i)\{(?:DATE|L?EPOCH|TAI64N)\}`)
	unnamedGroup   = regexp.MustCompile(`(?:^|[^\\])\((?:[^?]|$)`)
)

// pattern writes a regular expression, and reports whether it could be converted.
func (r *filterReader) pattern(word string, v setting, text string) bool {
	return r.write(word, v, r.groups(text), text)
}

// write writes a line of the file if it is valid.
func (r *filterReader) write(word string, v setting, text, original string) bool {
	line := word + " " + text + "\n"
	check := line
	if word != "match" {
		check += "match x\n"
	}
	if _, err := accesslog.ParsePatterns("filter", []byte(check)); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		r.note(v.place, "[%s]: %s: left out: %s: %s", r.jail, word, strings.TrimPrefix(first, "accesslog: filter:1:"), original)
		return false
	}
	r.file.WriteString(line)
	return true
}

var (
	filterTag  = regexp.MustCompile(`</?[\w\-]+/?>`)
	groupNames = regexp.MustCompile(`(\(\?P[<=(]|\(\?\()(\w+)([>)])`)
)

// tagPatterns are the tags of fail2ban that stand for patterns.
var tagPatterns = map[string]string{
	"<HOST>": "<HOST>", "<ADDR>": "<ADDR>", "<F-ADDR/>": "<ADDR>",
	"<IP4>": ipv4, "<F-IP4/>": ipv4, "<IP6>": ipv6, "<F-IP6/>": ipv6,
	"<DNS>": dns, "<F-DNS/>": dns, "<CIDR>": `(?P<cidr>\d+)`, "<F-CIDR/>": `(?P<cidr>\d+)`,
	"<SUBNET>": `<ADDR>(?:/(?P<cidr>\d+))?`, "<F-SUBNET/>": `<ADDR>(?:/(?P<cidr>\d+))?`,
	"<F-ID/>": `(?P<client>\S+)`, "<F-PORT/>": `(?P<port>\w+)`,
}

const (
	ipv4 = `(?:::f{4,6}:)?(?P<client>(?:\d{1,3}\.){3}\d{1,3})`
	ipv6 = `(?P<client>(?:[0-9a-fA-F]{1,4}::?|:){1,7}(?:[0-9a-fA-F]{1,4}|(?<=:):))`
	dns  = `(?P<client>[\w\-.^_]*\w)`
)

// groups replaces the tags of a regular expression by groups with the names of fields.
func (r *filterReader) groups(text string) string {
	open := map[string]bool{}
	text = filterTag.ReplaceAllStringFunc(text, func(tag string) string {
		if p, ok := tagPatterns[tag]; ok {
			return p
		}
		name, closes := strings.CutPrefix(tag, "</F-")
		if closes {
			if open[name] {
				return ")"
			}
			return tag
		}
		if name, ok := strings.CutPrefix(tag, "<F-"); ok && strings.ToUpper(name) == name {
			open[name] = true
			return r.group(strings.ToLower(strings.TrimSuffix(name, ">")))
		}
		return tag
	})
	return groupNames.ReplaceAllStringFunc(text, func(group string) string {
		m := groupNames.FindStringSubmatch(group)
		return m[1] + fieldOf(m[2]) + m[3]
	})
}

// group returns the begin of the group of a tag.
func (r *filterReader) group(name string) string {
	switch name {
	case "mlfid", "mlfforget":
		return "(?:"
	case "mlfgained", "nofail":
		if !r.multi {
			return "(?:"
		}
		return "(?P<nofail>"
	}
	return "(?P<" + fieldOf(name) + ">"
}

var alternative = regexp.MustCompile(`^(?:alt|tuple)_(\w+?)(?:_\d+)?$`)

// fieldOf returns the name of the field of a group. Several groups may have one name: the first
// that matches counts.
func fieldOf(name string) string {
	if m := alternative.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	switch name {
	case "host", "fid", "id", "ip4", "ip6", "dns":
		return "client"
	case "fport":
		return "port"
	case "time", "filter":
		return "its_" + name
	}
	return name
}
