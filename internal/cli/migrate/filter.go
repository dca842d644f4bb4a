package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog"
)

// A PatternFile is a filter of fail2ban as a file of patterns, which [accesslog.ParsePatterns]
// reads.
type PatternFile struct {
	Name string   `json:"name"` // JAIL.regex
	Data []byte   `json:"-"`
	Logs []string `json:"logs"` // paths of the jail, which may be patterns of shells, or a part of the journal
}

// A filterReader converts the filter of a jail.
type filterReader struct {
	*builder
	jail  string
	at    place             // of the jail's filter
	s     settings          // of the filter
	given map[string]string // settings of the jail and options of its filter
	multi bool              // lines of a connection belong together, by <F-MLFID>
	file  strings.Builder
}

// The section of a filter, and the one with defaults of its options.
const (
	definition = "Definition"
	initial    = "Init"
)

// filter converts the filter of a jail, and returns the name that its events have, "" if it
// could not be converted.
func (b *builder) filter(s settings, jail string) (name string) {
	v, ok := s.get(jail, "filter")
	if !ok || v.text == "" {
		v.text, v.place = jail, s[jail]["enabled"].place
	}
	filter, options, ok := filterOptions(v.text)
	if !ok {
		b.note(v.place, "[%s]: filter: %q: must be a name, or a name and options such as sshd[mode=aggressive]: not converted", jail, v.text)
		return ""
	}
	r := &filterReader{builder: b, jail: jail, at: v.place, s: settings{}, given: options}
	var order []string
	conf, local := "filter.d/"+filter+".conf", "filter.d/"+filter+".local"
	if !b.load(r.s, b.dir, conf, nil, &order) && !b.load(r.s, b.dir, local, nil, &order) {
		b.note(v.place, "[%s]: filter: there is no %s: not converted", jail, conf)
		return ""
	}
	r.giveOptions(s)
	if !r.convert() {
		return ""
	}
	name = b.name(jail + ".regex")
	b.patterns = append(b.patterns, PatternFile{Name: name, Data: []byte(r.file.String()), Logs: r.logs(s)})
	return strings.TrimSuffix(name, ".regex")
}

// filterOptions cuts a setting such as sshd[mode=normal, x="y"] into the name and the options.
func filterOptions(text string) (name string, options map[string]string, ok bool) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), "[")
	name, options = strings.TrimSpace(name), map[string]string{}
	if name == "" || strings.ContainsAny(name, " \n/") {
		return "", nil, false
	}
	for _, m := range filterOption.FindAllStringSubmatch("["+rest, -1) {
		options[strings.ToLower(m[1])] = strings.TrimSpace(m[2] + m[3] + m[4])
	}
	return name, options, true
}

var filterOption = regexp.MustCompile(`(?s)[\[,]\s*([\w\-.]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^,\]]*))`)

// giveOptions adds the settings of the jail to the options of its filter, which come first.
func (r *filterReader) giveOptions(s settings) {
	for _, key := range []string{"prefregex", "failregex", "ignoreregex", "datepattern", "maxlines", "journalmatch"} {
		if v, ok := s[r.jail][key]; ok {
			if value, ok := s.lines(r.jail, key, r.knownOptions()); ok {
				r.given[key] = value.text
			} else {
				r.note(v.place, "[%s]: %s: it names settings that no file has, or too many: that of the filter is used", r.jail, key)
			}
		}
	}
	backend, _ := s.get(r.jail, "backend")
	_, own := r.s[definition]["logtype"]
	if _, ok := r.given["logtype"]; !ok && !own {
		r.given["logtype"] = "file"
		if strings.HasPrefix(backend.text, "systemd") {
			r.given["logtype"] = "journal"
		}
	}
}

// knownOptions returns what a jail may name as %(known/NAME)s: the settings of the filter.
func (r *filterReader) knownOptions() map[string]string {
	vars := map[string]string{}
	for _, key := range r.s.names(definition) {
		if v, ok := r.s.lines(definition, key, r.given); ok {
			vars["known/"+key] = v.text
		}
	}
	return vars
}

// option returns a setting of the filter with all names replaced. Those of the jail come first.
func (r *filterReader) option(key string) (v setting, ok bool) {
	v, ok = r.unexpanded(key)
	if !ok {
		return v, false
	}
	if v.text, ok = r.expandTags(v.text); !ok {
		r.note(v.place, "[%s]: %s: its tags name each other, or too many", r.jail, key)
	}
	return v, ok
}

// unexpanded returns a setting whose tags are not replaced.
func (r *filterReader) unexpanded(key string) (v setting, ok bool) {
	if value, ok := r.given[key]; ok {
		return setting{r.at, value}, true
	}
	if _, ok = r.s[initial][key]; ok {
		if v, ok = r.s.lines(initial, key, r.given); ok {
			return v, true
		}
	}
	if _, ok = r.s.raw(definition, key); !ok {
		return v, false
	}
	if v, ok = r.s.lines(definition, key, r.given); !ok && v.file != "" && (key == "failregex" || key == "prefregex" || key == "ignoreregex" || key == "datepattern") {
		r.note(v.place, "[%s]: %s: it names settings that no file has, or too many", r.jail, key)
	}
	return v, ok
}

var optionTag = regexp.MustCompile(`<([^ <>]+)>`)

// expandTags replaces <NAME> by the option of that name. Other tags stay.
func (r *filterReader) expandTags(text string) (string, bool) {
	for replaced, from := 0, 0; ; {
		m := optionTag.FindStringSubmatchIndex(text[from:])
		if m == nil && replaced == 0 {
			return text, true
		}
		if m == nil { // those around the ones that were replaced
			replaced, from = 0, 0
			continue
		}
		tag := text[from+m[2] : from+m[3]]
		v, ok := r.tag(tag)
		if !ok {
			from += m[1]
			continue
		}
		text = strings.ReplaceAll(text, "<"+tag+">", v)
		from += m[0]
		if r.tags++; r.tags > maxReplaced || len(text) > maxExpanded {
			return "", false
		}
		replaced++
	}
}

// tag returns the value of <NAME>.
func (r *filterReader) tag(name string) (string, bool) {
	section, key, found := strings.Cut(name, "/")
	if name = strings.ToLower(section); found { // names of sections have upper case
		name = section + "/" + strings.ToLower(key)
	}
	v, ok := r.unexpanded(name)
	return v.text, ok
}

// convert writes the file of patterns. It returns false if no pattern is left.
func (r *filterReader) convert() bool {
	fmt.Fprintf(&r.file, "# Converted from %s: [%s].\n", r.at, r.jail)
	prefix, ok := r.option("prefregex")
	if _, has := r.s.raw(definition, "prefregex"); has && !ok {
		r.note(r.at, "[%s]: not converted without its prefregex", r.jail)
		return false
	}
	failures, ok := r.option("failregex")
	if !ok || strings.TrimSpace(failures.text) == "" {
		r.note(r.at, "[%s]: filter: it has no failregex: not converted", r.jail)
		return false
	}
	r.multi = strings.Contains(prefix.text+failures.text, "<F-MLFID>")
	if v, ok := r.option("maxlines"); ok && v.text != "1" && v.text != "" {
		r.note(v.place, "[%s]: maxlines = %s: each line is matched alone", r.jail, v.text)
	}
	r.times()
	if prefix.text != "" && !r.pattern("prefix", prefix, prefix.text) {
		r.note(prefix.place, "[%s]: not converted without its prefregex", r.jail)
		return false
	}
	converted := r.failures(failures, prefix.text)
	if ignored, ok := r.option("ignoreregex"); ok {
		for _, text := range nonEmptyLines(ignored.text) {
			r.pattern("ignore", ignored, text)
		}
	}
	if converted == 0 {
		r.note(failures.place, "[%s]: not converted: no pattern of the filter is left", r.jail)
		return false
	}
	if _, err := accesslog.ParsePatterns(r.jail, []byte(r.file.String())); err != nil { // too many patterns
		r.note(failures.place, "[%s]: not converted: %s", r.jail, strings.TrimPrefix(err.Error(), "accesslog: "))
		return false
	}
	return true
}

// failures writes the lines of failregex, and returns how many there are.
func (r *filterReader) failures(v setting, prefix string) (converted int) {
	for _, text := range nonEmptyLines(v.text) {
		switch {
		case strings.Contains(text, "<SKIPLINES>"):
			r.note(v.place, "[%s]: failregex: left out, since it matches several lines: %s", r.jail, text)
		case !clientTag.MatchString(text) && !clientTag.MatchString(prefix):
			r.note(v.place, "[%s]: failregex: left out, since its lines have no address, which fail2ban takes from other lines of the same connection: %s", r.jail, text)
		case r.pattern("match", v, text):
			converted++
			if r.multi && noFailTag.MatchString(text) {
				r.note(v.place, "[%s]: failregex: its lines are no failures alone, and other lines of the same connection are not joined with them: %s", r.jail, text)
			}
		}
	}
	return converted
}

var (
	clientTag = regexp.MustCompile(`<(?:HOST|ADDR|IP4|IP6|DNS|SUBNET|F-(?:IP4|IP6|ADDR|DNS|ID|SUBNET)/?)>|\(\?P<(?:host|fid|ip4|ip6|dns)>`)
	noFailTag = regexp.MustCompile(`<F-(?:NOFAIL|MLFGAINED)>`)
)

func nonEmptyLines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}

// times writes the lines of datepattern. Without it the well-known times are found.
func (r *filterReader) times() {
	v, ok := r.option("datepattern")
	if !ok || v.text == "{DEFAULT}" {
		return
	}
	for _, text := range nonEmptyLines(v.text) {
		if strings.Contains(text, "()") {
			r.note(v.place, "[%s]: datepattern: left out, since lines without a time have no place in a log: %s", r.jail, text)
			continue
		}
		r.write("time", v, timeOf(text), text)
	}
}

// logs returns the logs of the jail as --follow names them: the journal with what journalmatch selects if that is what the jail
// reads, else its paths.
func (r *filterReader) logs(s settings) (paths []string) {
	if backend, _ := s.get(r.jail, "backend"); strings.HasPrefix(backend.text, "systemd") {
		match, _ := r.option("journalmatch")
		if match.text == "" {
			return []string{"journal"}
		}
		return []string{"journal:" + strings.Join(strings.Fields(match.text), ",")}
	}
	v, ok := s.lines(r.jail, "logpath", nil)
	if !ok {
		return nil
	}
	for _, line := range nonEmptyLines(v.text) {
		paths = append(paths, strings.Fields(line)[0])
	}
	return paths
}
