package migrate

import "strings"

// settings are those of fail2ban: by section and name, with the place of the last file that
// sets it.
type settings map[string]map[string]setting

type setting struct {
	place
	text string
}

// readINI adds the settings of a file, as Python's configparser reads it with the inline
// comments of fail2ban.
func (b *builder) readINI(into settings, src Source, order *[]string) {
	b.files = append(b.files, src.Name)
	section, key := "", ""
	n := 0
	for line := range strings.Lines(string(src.Data)) {
		n++
		at := place{src.Name, n}
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
			s.text = strings.TrimSpace(s.text + " " + text)
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
}

const defaults = "DEFAULT"

// get returns a setting of a section, or that of the defaults, with %(name)s replaced. ok is
// false if there is none, or one that it names.
func (s settings) get(section, key string) (v setting, ok bool) {
	if v, ok = s.raw(section, key); !ok {
		return v, false
	}
	left := maxReplaced
	v.text, ok = s.expand(section, v.text, &left)
	return v, ok
}

// maxReplaced bounds how many %(name)s are replaced in one setting, since they may name
// each other.
const maxReplaced = 1000

// expand replaces %(name)s in text, at most left of them.
func (s settings) expand(section, text string, left *int) (string, bool) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "%(")
		out.WriteString(before)
		if !found {
			return out.String(), out.Len() < 1<<16
		}
		name, after, closed := strings.Cut(rest, ")s")
		v, ok := s.raw(section, name)
		if name == "__name__" {
			v, ok = setting{text: section}, true
		}
		if *left--; !closed || !ok || *left < 0 {
			return "", false
		}
		value, ok := s.expand(section, v.text, left)
		if !ok {
			return "", false
		}
		out.WriteString(value)
		text = after
	}
}

// raw returns a setting of a section, or that of the defaults, as it was written.
func (s settings) raw(section, key string) (v setting, ok bool) {
	if v, ok = s[section][key]; !ok {
		v, ok = s[defaults][key]
	}
	return v, ok
}
