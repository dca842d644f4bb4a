package migrate

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// settings are those of fail2ban: by section and name, with the place of the last file that
// sets it. Lines of a value are separated by '\n'.
type settings map[string]map[string]setting

type setting struct {
	place
	text string
}

const (
	defaults = "DEFAULT"
	includes = "INCLUDES"

	// known begins the names of sections with the values that later files have replaced.
	known = "KNOWN/"
)

// maxIncluded bounds the files that one file of fail2ban includes.
const maxIncluded = 50

// readINI reads the settings of a file, as Python's configparser reads it with the inline
// comments of fail2ban. It appends the names of sections to order.
func (b *builder) readINI(name string, data []byte, order *[]string) settings {
	into := settings{}
	b.files = append(b.files, name)
	section, key := "", ""
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		at := place{name, n}
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "#") || strings.HasPrefix(text, ";") {
			continue
		}
		for _, before := range []string{" ;", "\t;"} {
			text, _, _ = strings.Cut(text, before)
		}
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		switch indented := line[0] == ' ' || line[0] == '\t'; {
		case indented && key != "":
			s := into[section][key]
			s.text = strings.TrimLeft(s.text+"\n"+text, "\n")
			into[section][key] = s
		case text[0] == '[' && strings.HasSuffix(text, "]"):
			section, key = text[1:len(text)-1], ""
			if into[section] == nil {
				into[section] = map[string]setting{}
				*order = append(*order, section)
			}
		default:
			i := strings.IndexAny(text, "=:")
			if i <= 0 || section == "" {
				b.note(at, "%.80q: must be a section or a setting of one", text)
				key = ""
				continue
			}
			key = strings.ToLower(strings.TrimSpace(text[:i]))
			into[section][key] = setting{at, strings.TrimSpace(text[i+1:])}
		}
	}
	return into
}

// merge adds the settings of a later file, and keeps those that it replaces.
func (s settings) merge(later settings) {
	for section, values := range later {
		if s[section] == nil {
			s[section] = map[string]setting{}
		}
		for key, v := range values {
			if old, ok := s[section][key]; ok {
				if s[known+section] == nil {
					s[known+section] = map[string]setting{}
				}
				s[known+section][key] = old
			}
			s[section][key] = v
		}
	}
}

// load adds a file of a configuration directory to s, with the files that it includes and the
// one of the same name that ends in .local. It reports whether the file exists.
func (b *builder) load(s settings, dir fs.FS, name string, seen []string, order *[]string) bool {
	if slices.Contains(seen, name) || len(seen) > maxIncluded {
		return true
	}
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		b.noteMissing(name, err)
		return !errors.Is(err, fs.ErrNotExist)
	}
	seen = append(seen, name)
	own := b.readINI(name, data, order)
	include := func(key string) {
		v, ok := own[includes][key]
		for _, included := range strings.Split(v.text, "\n") {
			if ok && included != "" && !b.load(s, dir, path.Join(path.Dir(name), included), seen, order) && key == "before" {
				b.note(v.place, "before = %s: no such file", included)
			}
		}
	}
	include("before")
	s.merge(own)
	include("after")
	if base, ok := strings.CutSuffix(name, ".conf"); ok {
		b.load(s, dir, base+".local", seen, order)
	}
	return true
}

// noteMissing adds a note about a file or folder that exists, and could not be read.
func (b *builder) noteMissing(name string, err error) {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		b.note(place{name, 1}, "%v: its settings are missing", err)
	}
}

// get returns a setting of a section or of the defaults, in one line and with %(name)s
// replaced. ok is false if there is none, or one that it names.
func (s settings) get(section, key string) (v setting, ok bool) {
	v, ok = s.lines(section, key, nil)
	v.text = strings.ReplaceAll(v.text, "\n", " ")
	return v, ok
}

// lines is get for a setting of several lines. Vars come before those of the section.
func (s settings) lines(section, key string, vars map[string]string) (v setting, ok bool) {
	if v, ok = s.raw(section, key); !ok {
		return v, false
	}
	left := maxReplaced
	v.text, ok = s.expand(section, v.text, vars, &left)
	return v, ok
}

// maxReplaced bounds how many names are replaced in one setting, since they may name
// each other.
const maxReplaced = 1000

// maxExpanded bounds the length of a setting after that.
const maxExpanded = 1 << 16

// expand replaces %(name)s in text, at most left of them, and %% by %.
func (s settings) expand(section, text string, vars map[string]string, left *int) (string, bool) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "%")
		out.WriteString(before)
		switch {
		case !found:
			return out.String(), out.Len() < maxExpanded
		case strings.HasPrefix(rest, "%"):
			out.WriteByte('%')
			text = rest[1:]
			continue
		case !strings.HasPrefix(rest, "("):
			out.WriteByte('%')
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest[1:], ")s")
		value, ok := s.named(section, strings.ToLower(name), vars, left)
		if !closed || !ok || out.Len()+len(value) > maxExpanded {
			return "", false
		}
		out.WriteString(value)
		text = after
	}
}

// named returns the value of a name in %(name)s.
func (s settings) named(section, name string, vars map[string]string, left *int) (string, bool) {
	if *left--; *left < 0 {
		return "", false
	}
	if name == "__name__" {
		return section, true
	}
	if value, ok := vars[name]; ok {
		return value, true
	}
	v, ok := s.raw(section, name)
	if !ok {
		return "", false
	}
	return s.expand(section, v.text, vars, left)
}

// raw returns a setting of a section or of the defaults, without replacements. A name may
// be SECTION/NAME, or known/NAME for the value that a later file replaced.
func (s settings) raw(section, key string) (v setting, ok bool) {
	if other, name, found := strings.Cut(key, "/"); found {
		if other == "known" {
			other = known + section
		}
		if v, ok = s[other][name]; ok {
			return v, true
		}
		v, ok = s[defaults][name]
		return v, ok
	}
	if v, ok = s[section][key]; !ok {
		v, ok = s[defaults][key]
	}
	return v, ok
}

// names returns the settings of a section and of the defaults.
func (s settings) names(section string) []string {
	all := maps.Clone(s[defaults])
	if all == nil {
		all = map[string]setting{}
	}
	maps.Copy(all, s[section])
	return slices.Sorted(maps.Keys(all))
}
