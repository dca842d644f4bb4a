package migrate

import (
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// Fail2ban reads the configuration directory of fail2ban, such as /etc/fail2ban, with the
// filters of its jails. An enabled jail becomes a ban of the same counts and times, its filter a file
// of patterns, and the ban is about the lines that these match. It is in shadow mode until it was
// tested on a log. Folder is where the files of patterns will be, for the comments of the rules file.
func Fail2ban(dir fs.FS, folder string) *Result {
	b := &builder{dir: dir, folder: folder}
	s, order := settings{}, []string{}
	found := b.load(s, dir, "jail.conf", nil, &order)
	more, err := fs.ReadDir(dir, "jail.d")
	if err != nil {
		b.noteMissing("jail.d", err)
	}
	for _, ending := range []string{".conf", ".local"} {
		if ending == ".local" {
			found = b.load(s, dir, "jail.local", nil, &order) || found
		}
		for _, file := range more {
			if path.Ext(file.Name()) == ending {
				found = b.load(s, dir, path.Join("jail.d", file.Name()), nil, &order) || found
			}
		}
	}
	if !found {
		b.note(place{"jail.conf", 1}, "there is neither this file nor jail.local: must be in the directory")
	}
	return b.jails(s, order)
}

// jails adds the rules of the jails that are enabled. Order is the names of the sections, perhaps
// more than once.
func (b *builder) jails(s settings, order []string) *Result {
	var jails []string
	seen := map[string]bool{defaults: true, includes: true}
	for _, section := range order {
		if seen[section] {
			continue
		}
		seen[section] = true
		enabled, _ := s.get(section, "enabled")
		switch text := strings.ToLower(enabled.text); {
		case isOn(text):
			jails = append(jails, section)
		case !slices.Contains([]string{"false", "no", "off", "0", ""}, text):
			b.note(enabled.place, "[%s]: enabled: %q: must be true or false", section, enabled.text)
		}
	}
	for _, name := range jails {
		b.jail(s, name)
	}
	b.ignored(s, jails)
	b.globals(s)
	return b.result()
}

func isOn(text string) bool { return slices.Contains([]string{"true", "yes", "on", "1"}, text) }

// jail adds the ban of one jail.
func (b *builder) jail(s settings, jail string) {
	enabled, _ := s.get(jail, "enabled")
	at := enabled.place
	number := func(key, must string, parse func(string) bool) bool {
		v, ok := s.get(jail, key)
		switch {
		case !ok && v.file == "":
			b.note(at, "[%s]: not imported: %s: missing: must be in jail.conf or another file of jails", jail, key)
		case !ok:
			b.note(v.place, "[%s]: not imported: %s: it names settings that no file has, or too many", jail, key)
		case !parse(v.text):
			b.note(v.place, "[%s]: not imported: %s: %q: must be %s", jail, key, v.text, must)
		default:
			return true
		}
		return false
	}
	var retry int
	var find, ban time.Duration
	const span = "a time from 1s to 3650d, such as 600, 10m or 1h 30m"
	ok := number("maxretry", "a number from 1 to 65536", func(text string) (ok bool) {
		var err error
		retry, err = strconv.Atoi(text)
		return err == nil && retry >= 1 && retry <= 1<<16
	})
	ok = number("findtime", span, func(text string) (ok bool) { find, ok = fail2banTime(text); return ok }) && ok
	ok = number("bantime", span+"; a ban that never ends is not one of Lately", func(text string) (ok bool) { ban, ok = fail2banTime(text); return ok }) && ok
	b.others(s, jail)
	if !ok {
		return
	}
	filter := jail
	if v, ok := s.get(jail, "filter"); ok {
		filter = v.text
	}
	name, selected := b.name(jail), b.filter(s, jail)
	if selected == "" {
		return // a rule without a filter would be about all lines
	}
	rule := fmt.Sprintf("{name: %s, key: client, when: {filter: %s}, after: %d hits in %s, %s, mode: shadow}",
		quoted(name), quoted(selected), retry-1, rulevalue.FormatDuration(find), b.length(s, jail, ban))
	b.add(at, fmt.Sprintf("%v: [%s], filter %s: banned at hit %d", at, jail, filter, retry), rule)
}

// length returns how long bans of a jail last: keys and values of a rule.
func (b *builder) length(s settings, jail string, ban time.Duration) string {
	plain := "for: " + rulevalue.FormatDuration(ban)
	if increment, _ := s.get(jail, "bantime.increment"); !isOn(strings.ToLower(increment.text)) {
		return plain
	}
	if v, ok := s.get(jail, "bantime.formula"); ok && v.text != "" {
		b.note(v.place, "[%s]: bantime.formula: not expressed: each ban is as long as the first", jail)
		return plain
	}
	factor := 1.0
	if v, ok := s.get(jail, "bantime.factor"); ok && v.text != "" {
		f, err := strconv.ParseFloat(v.text, 64)
		if err != nil || !(f > 0 && f <= 1e6) {
			b.note(v.place, "[%s]: bantime.factor: %q: must be a number above 0: each ban is as long as the first", jail, v.text)
			return plain
		}
		factor = f
	}
	longest := maxTime
	if v, ok := s.get(jail, "bantime.maxtime"); ok && v.text != "" {
		d, ok := fail2banTime(v.text)
		if !ok {
			b.note(v.place, "[%s]: bantime.maxtime: %q: must be a time from 1s to 3650d: not expressed", jail, v.text)
		} else {
			longest = d
		}
	}
	if v, ok := s.get(jail, "bantime.multipliers"); ok && v.text != "" {
		return b.multiplied(jail, v, ban, factor, longest)
	}
	if factor == 1 { // 2 to the power of the number of earlier bans
		return fmt.Sprintf("%s, factor: 2, max: %s", plain, rulevalue.FormatDuration(max(longest, ban)))
	}
	list := []time.Duration{ban}
	for by := 2 * factor; len(list) <= 20 && list[len(list)-1] < longest; by *= 2 {
		list = append(list, times(ban, by, longest))
	}
	return durations(list)
}

// multiplied is the length of bans with bantime.multipliers: the i-th multiplier is for
// the ban after i earlier ones.
func (b *builder) multiplied(jail string, v setting, ban time.Duration, factor float64, longest time.Duration) string {
	list := []time.Duration{ban}
	for i, text := range strings.Fields(v.text) {
		m, err := strconv.ParseFloat(text, 64)
		if err != nil || !(m > 0 && m <= 1e6) {
			b.note(v.place, "[%s]: bantime.multipliers: %q: must be numbers above 0: each ban is as long as the first", jail, text)
			return durations(list[:1])
		}
		if i > 0 && len(list) < 64 {
			list = append(list, times(ban, factor*m, longest))
		} else if i > 0 {
			b.note(v.place, "[%s]: bantime.multipliers: more than 64: the others are not expressed", jail)
			break
		}
	}
	return durations(list)
}

func times(d time.Duration, by float64, most time.Duration) time.Duration {
	if product := float64(d) * by; product < float64(most) {
		return max(time.Duration(product).Truncate(time.Millisecond), time.Millisecond)
	}
	return most
}

func durations(list []time.Duration) string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = rulevalue.FormatDuration(d)
	}
	return "for: [" + strings.Join(texts, ", ") + "]"
}

// others names the settings of a jail that are not in its rule.
func (b *builder) others(s settings, jail string) {
	known := []string{
		"enabled", "maxretry", "findtime", "bantime", "bantime.increment", "bantime.formula", "bantime.factor", "bantime.maxtime",
		"bantime.multipliers", "ignoreip", "filter",
		"logpath", "prefregex", "failregex", "ignoreregex", "datepattern", "maxlines", "journalmatch", "backend", "mode",
	}
	for _, key := range slices.Sorted(maps.Keys(s[jail])) {
		if v := s[jail][key]; v.text != "" && !slices.Contains(known, key) {
			b.note(v.place, "[%s]: %s: not a part of a rule", jail, key)
		}
	}
}

// globals names the defaults that change what is counted, or for how long, and that rules
// do not have.
func (b *builder) globals(s settings) {
	for key, why := range map[string]string{
		"ignorecommand":        "a rule cannot run a command: list the addresses under allow",
		"bantime.rndtime":      "not expressed: jitter of a rule is a share of the ban",
		"bantime.overalljails": "not expressed: each rule counts its own bans",
	} {
		if v, ok := s[defaults][key]; ok && v.text != "" && strings.ToLower(v.text) != "false" {
			b.note(v.place, "%s: %s", key, why)
		}
	}
}

// ignored makes the addresses that all jails ignore the allow list, which holds for all
// rules.
func (b *builder) ignored(s settings, jails []string) {
	in := map[string]int{} // of how many jails
	at := map[string]setting{}
	var all []string
	for _, jail := range jails {
		v, ok := s.get(jail, "ignoreip")
		if !ok {
			continue
		}
		for _, text := range slices.Compact(slices.Sorted(strings.FieldsFuncSeq(v.text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }))) {
			if in[text]++; in[text] == 1 {
				all = append(all, text)
				at[text] = v
			}
		}
	}
	for _, text := range all {
		prefix, err := ignoredPrefix(text)
		switch {
		case err != nil:
			b.note(at[text].place, "ignoreip: %q: must be an address or a network: not on the allow list", text)
		case in[text] < len(jails):
			b.note(at[text].place, "ignoreip: %s: not of every jail: the allow list holds for all rules, so it is not on it", text)
		default:
			b.allow = append(b.allow, quoted(prefix.String()))
		}
	}
	slices.Sort(b.allow)
	b.allow = slices.Compact(b.allow)
}

// ignoredPrefix reads an address or a network. Like fail2ban it ignores the host bits.
func ignoredPrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return addr.Unmap().Prefix(addr.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

const maxTime = 3650 * 24 * time.Hour

// fail2banTime reads a time of fail2ban: seconds, or numbers with units.
func fail2banTime(text string) (time.Duration, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return bounded(float64(n))
	}
	var sum float64
	for rest := text; rest != ""; {
		rest = strings.TrimLeft(rest, " ")
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil {
			return 0, false
		}
		rest = strings.TrimLeft(rest[digits:], " ")
		letters := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))
		unit, ok := fail2banUnits[rest[:letters]]
		if !ok {
			return 0, false
		}
		sum += float64(n) * unit
		rest = strings.TrimLeft(rest[letters:], " ")
	}
	return bounded(sum)
}

// fail2banUnits are the units of times in fail2ban, in seconds.
var fail2banUnits = map[string]float64{
	"s": 1, "ss": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "mm": 60, "min": 60, "minute": 60, "minutes": 60,
	"h": 3600, "hh": 3600, "hour": 3600, "hours": 3600, "d": 86400, "dd": 86400, "day": 86400, "days": 86400,
	"w": 604800, "ww": 604800, "week": 604800, "weeks": 604800,
}

func bounded(seconds float64) (time.Duration, bool) {
	if seconds < 1 || seconds > maxTime.Seconds() {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}
