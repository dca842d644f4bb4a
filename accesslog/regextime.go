package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/accesslog/internal/regex"
)

// A timePattern finds the time of a line.
type timePattern struct {
	*regex.Pattern
	whole int        // group of the text that is the time
	parts [128][]int // groups by the letter of their directive; t is TAI64N
	words bool       // the time is between characters that are not of words, or at the begin of the line
}

// directives are the parts of a time, as strptime names them, as patterns. A group is named
// by its letter.
var directives = map[byte]string{
	'D': `(?P<d>[12]\d|3[01]|0?[1-9])`, // without a blank in front
	'Y': `(?P<Y>(?:19|2[01])\d\d)`, 'y': `(?P<y>\d\d)`, 'm': `(?P<m>1[0-2]|0?[1-9])`, 'd': `(?P<d>[12]\d|3[01]|[0 ]?[1-9])`, 'j': `(?P<j>\d{3})`,
	'b': `(?P<b>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))`,
	'a': `(?i:mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)`,
	'H': `(?P<H>[01]?\d|2[0-3]| \d)`, 'I': `(?P<I>1[0-2]|[0 ]?[1-9])`, 'M': `(?P<M>[0-5]?\d)`, 'S': `(?P<S>[0-5]?\d|6[01])`, 'f': `(?P<f>\d{1,9})`,
	'p': `(?P<p>(?i:[ap]m))`, 'z': `(?P<z>Z|UTC|GMT|[+-][01]\d(?::?\d\d)?)`, 'Z': `(?P<z>Z|[A-Z]{3,5})`, 's': `(?P<s>\d{10,19}(?:\.\d{1,9})?)`, '%': `%`,
	'T': `(?P<H>[01]?\d|2[0-3]):(?P<M>[0-5]\d):(?P<S>[0-5]\d|60)`, 'F': `(?P<Y>(?:19|2[01])\d\d)-(?P<m>\d\d)-(?P<d>\d\d)`,
}

// sameDirectives are other letters for a directive.
var sameDirectives = map[byte]byte{'B': 'b', 'h': 'b', 'A': 'a', 'e': 'd', 'k': 'H', 'l': 'I'}

// tai64n is a time of daemontools: seconds and nanoseconds in hexadecimal digits.
const tai64n = `@(?P<tai>[0-9a-f]{24})`

// dateTag is replaced by each of the well-known times.
const dateTag = "{DATE}"

// knownTimes are the times that are found without a line with time. The more digits they
// need, the earlier they come.
var knownTimes = []string{
	`%Y[-/.]%m[-/.]%d(?:T|  ?)%H:%M:%S(?:[.,]%f)?(?:\s*%z)?`,
	`(?:%a )?%b %d %H:%M:%S(?:\.%f)?(?: %Y)?`,
	`(?:%a )?%b %d %Y %H:%M:%S(?:\.%f)?`,
	`%D(?:/%m/|-%m-)(?:%Y|%y) %H:%M:%S`,
	`%D(?:/%b/|-%b-)%Y[ :]?%H:%M:%S(?:\.%f)?(?: %z)?`,
	`%m/%d/%Y:%H:%M:%S`,
	`%m-%d-%Y %H:%M:%S(?:\.%f)?`,
	`%s`,
	`%m/%d/%y@%H:%M:%S`,
	`%y%m%d  ?%H:%M:%S`,
	`%b %d, %Y %I:%M:%S %p`,
	`%b-%d-%y %H:%M:%S`,
	`%Y%m%d(?:-|T|  ?)%H:?%M:?%S(?:[.,]%f)?(?:\s*%z)?`,
	`(?<!\w)(?:%Z|%z) (?:%a )?%b %d %H:%M:%S(?:\.%f)?(?: %Y)?`,
	`(?<!\w)` + tai64n,
	`%H:%M:%S`,
}

// lineBegin is where most lines have their time: behind up to two characters, such as "[".
const lineBegin = `^\W{0,2}`

// defaultTimes are those of a file without a line with time: one of the well-known times at
// the begin of the line, or else anywhere.
var defaultTimes = sync.OnceValue(func() (all []*timePattern) {
	for _, text := range []string{lineBegin + "(" + dateTag + ")", dateTag} {
		times, _, err := parseTimes(text)
		if err != nil {
			panic(err) // a mistake above, which every test finds
		}
		all = append(all, times...)
	}
	return all
})

// parseTimes returns the patterns of a line with time. The error is about text[at:].
func parseTimes(text string) (all []*timePattern, at int, err error) {
	if !strings.Contains(text, dateTag) {
		t, at, err := newTimePattern(text)
		return []*timePattern{t}, at, err
	}
	if strings.HasPrefix(text, "^") { // all of them in one pass
		t, at, err := newTimePattern(strings.ReplaceAll(text, dateTag, "(?:"+strings.Join(knownTimes, "|")+")"))
		if err != nil {
			return nil, min(at, len(text)), err
		}
		t.words = wordEdges(text)
		return []*timePattern{t}, 0, nil
	}
	for _, known := range knownTimes {
		if known == `%H:%M:%S` { // a duration, anywhere else
			continue
		}
		t, at, err := newTimePattern(strings.ReplaceAll(text, dateTag, "(?:"+known+")"))
		if err != nil {
			return nil, min(at, len(text)), err
		}
		t.words = wordEdges(text)
		all = append(all, t)
	}
	return all, 0, nil
}

// withoutDirectives returns a pattern of a time with its directives replaced by patterns, and its first group without a
// name, if it has one, by the group time. From has the place in text of each byte. An error is about text[at:].
func withoutDirectives(text string) (pattern string, from []int, grouped bool, at int, err error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		for len(from) < out.Len() {
			from = append(from, i-1)
		}
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			out.WriteString(text[i : i+2])
			i++
		case c == '(' && !grouped && !strings.HasPrefix(text[i:], "(?"):
			out.WriteString("(?P<time>")
			grouped = true
		case c == '%' && i+1 < len(text):
			i++
			letter := text[i]
			if other, ok := sameDirectives[letter]; ok {
				letter = other
			}
			directive, ok := directives[letter]
			if !ok {
				return "", nil, false, i - 1, fmt.Errorf("%%%c: unknown: must be a directive of strptime such as %%Y, %%m, %%d, %%b, %%H, %%M, %%S, %%f, %%z, or %%s for seconds since 1970", text[i])
			}
			out.WriteString(directive)
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), from, grouped, 0, nil
}

// newTimePattern compiles the pattern of a time. The time is the first group without a name,
// or all of the pattern. An error is about text[at:].
func newTimePattern(text string) (t *timePattern, at int, err error) {
	whole, from, grouped, at, err := withoutDirectives(text)
	if err != nil {
		return nil, at, err
	}
	if _, err := regex.Compile(whole); err != nil {
		at, problem := err.(*regex.Error).Offset, errors.New(err.(*regex.Error).Problem)
		if at < len(from) {
			return nil, from[at], problem
		}
		return nil, len(text) - 1, problem
	}
	if !grouped {
		whole = "(?P<time>" + whole + ")"
	}
	if !strings.HasPrefix(text, "^") {
		whole = `(?:^|\b|(?=\W))` + whole
	}
	compiled, err := regex.Compile(whole + `(?:\b|$|(?=\W))`)
	if err != nil {
		return nil, 0, errors.New(err.(*regex.Error).Problem)
	}
	t = &timePattern{Pattern: compiled, whole: compiled.Group("time"), words: wordEdges(text)}
	for number, name := range compiled.Names() {
		if len(name) == 1 && name[0] < 128 || name == "tai" {
			t.parts[name[0]] = append(t.parts[name[0]], number)
		}
	}
	if t.parts['S'] == nil && t.parts['M'] == nil && t.parts['s'] == nil && t.parts['t'] == nil {
		return nil, 0, errors.New("it has no time: must have directives such as %Y-%m-%d %H:%M:%S, %s for seconds since 1970, or {DATE} for the well-known times")
	}
	return t, 0, nil
}

// Texts of patterns next to a time, or at its edges, that are not of words, and are.
var (
	edgeBefore = regexp.MustCompile(`(?:^|\^\\W\{0,2\}|[\[("<= ])$`)
	edgeAfter  = regexp.MustCompile(`^(?:$|\\[\])">\-]|[\])"> ,;])`)
	wordBegin  = regexp.MustCompile(`^(?:\(\?:)?(?:\{DATE\}|%[^dekIlH%])`)
	wordEnd    = regexp.MustCompile(`(?:\{DATE\}|%[a-zA-Z])(?:\)\?)?$`)
)

// wordEdges reports whether the time that a pattern finds is at the begin of the line, or between
// characters that are not of words: then the surrounding bytes exclude most lines that cannot match.
// It may miss some.
func wordEdges(text string) bool {
	before, inner, after := "", text, ""
	if open := strings.Index(strings.ReplaceAll(text, `\(`, "  "), "("); open >= 0 && !strings.HasPrefix(text[open:], "(?") {
		end := strings.LastIndexByte(text, ')')
		if end < open {
			return false
		}
		before, inner, after = text[:open], text[open+1:end], text[end+1:]
	} else if strings.HasPrefix(text, "^") {
		return true // all up to the end of the time is cut
	}
	return edgeBefore.MatchString(before) && edgeAfter.MatchString(after) && wordBegin.MatchString(inner) && wordEnd.MatchString(inner)
}

// zoned reports whether the times name their zone.
func (t *timePattern) zoned() bool {
	return t.parts['z'] != nil || t.parts['s'] != nil || t.parts['t'] != nil
}

// part returns the text of a part of the time, nil if it has none.
func (t *timePattern) part(m *regex.Matcher, letter byte) []byte {
	for _, n := range t.parts[letter] {
		if text := m.Group(n); text != nil {
			return bytes.TrimLeft(text, " ")
		}
	}
	return nil
}

// number returns the value of a part, or other if the time lacks it.
func (t *timePattern) number(m *regex.Matcher, letter byte, other int) int {
	text := t.part(m, letter)
	if len(text) == 0 {
		return other
	}
	n, _ := digitsValue(text)
	return n
}

// patternTime returns the time that m has found.
func (p *Parser) patternTime(t *timePattern, m *regex.Matcher) (sec, nsec int64, ok bool) {
	p.yearless = false
	if text := t.part(m, 's'); text != nil {
		whole, _, _ := bytes.Cut(text, []byte{'.'})
		return readDecimal(text, max(0, (len(whole)-10)/3*3))
	}
	if text := t.part(m, 't'); text != nil {
		return readTAI(string(text))
	}
	clock, onClock := clockSeconds(t.hour(m), t.number(m, 'M', 0), t.number(m, 'S', 0))
	if text := t.part(m, 'f'); text != nil {
		nsec, _, _ = readFraction(append([]byte{'.'}, text...))
	}
	ahead, zoned := zoneAhead(t.part(m, 'z'))
	date, ok := t.date(m)
	if p.yearless = !ok; !ok {
		date, ok = t.lateDate(m, time.Now().In(p.location()), clock)
	}
	if sec = date + clock - ahead; !zoned {
		sec = p.zone.seconds(date + clock)
	}
	return sec, nsec, ok && onClock
}

// location returns the zone of times that name none.
func (p *Parser) location() *time.Location {
	if p.zone.zone == nil {
		return time.UTC
	}
	return p.zone.zone
}

// date returns the date of a time that has a year.
func (t *timePattern) date(m *regex.Matcher) (date int64, ok bool) {
	year := t.number(m, 'Y', 0)
	if t.part(m, 'y') != nil {
		year = 2000 + t.number(m, 'y', 0)
	}
	if yearDay := t.number(m, 'j', 0); yearDay > 0 {
		first, ok := dateSeconds(year, 1, 1)
		return first + int64(yearDay-1)*daySeconds, ok && yearDay <= LeapYearDays
	}
	return dateSeconds(year, t.month(m), t.number(m, 'd', 0))
}

// lateDate returns the date of a time without a year: that of the last year in which the
// time is at most a day ahead of now. A time without a day, too, is the last one that is not
// ahead of now.
func (t *timePattern) lateDate(m *regex.Matcher, now time.Time, clock int64) (date int64, ok bool) {
	if t.part(m, 'Y') != nil || t.part(m, 'y') != nil {
		return 0, false
	}
	local := time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), now.Minute(), now.Second(), 0, time.UTC).Unix()
	month, day := t.month(m), t.number(m, 'd', 0)
	if month == 0 && day == 0 {
		date = local - local%daySeconds
		if date+clock > local {
			date -= daySeconds
		}
		return date, true
	}
	for year := now.Year() + 1; year > now.Year()-8; year-- { // one of eight has a February 29
		if date, ok = dateSeconds(year, month, day); ok && date+clock <= local+daySeconds {
			return date, true
		}
	}
	return 0, false
}

// month returns the month of a time, 0 if it has none.
func (t *timePattern) month(m *regex.Matcher) int {
	text := t.part(m, 'b')
	if text == nil {
		return t.number(m, 'm', 0)
	}
	return monthNamed([]byte{text[0] &^ 0x20, text[1] | 0x20, text[2] | 0x20})
}

// hour returns the hour of the day.
func (t *timePattern) hour(m *regex.Matcher) int {
	if t.part(m, 'I') == nil {
		return t.number(m, 'H', 0)
	}
	hour := t.number(m, 'I', 0) % 12
	if text := t.part(m, 'p'); len(text) > 0 && text[0]|0x20 == 'p' {
		hour += 12
	}
	return hour
}

// zoneHours are the zones whose names mean the same everywhere: those of RFC 822, and of
// Europe. Other names stand for the zone of the log.
var zoneHours = map[string]int64{
	"Z": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
}

// zoneAhead returns by how many seconds a zone is ahead of UTC.
func zoneAhead(text []byte) (seconds int64, ok bool) {
	if hours, ok := zoneHours[string(text)]; ok {
		return hours * hourSeconds, true
	}
	if len(text) < len("+hh") || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	digits := strings.ReplaceAll(string(text[1:]), ":", "") + "00"
	hour, _ := digitsValue([]byte(digits[:2]))
	minute, _ := digitsValue([]byte(digits[2:4]))
	seconds = int64(hour)*hourSeconds + int64(minute)*minuteSeconds
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// readTAI reads a time of 24 hexadecimal digits. TAI was 10 seconds ahead of UTC in 1970, which
// is what programs subtract.
func readTAI(digits string) (sec, nsec int64, ok bool) {
	const epoch = 1<<62 + 10
	seconds, err1 := strconv.ParseUint(digits[:16], 16, 63)
	nanos, err2 := strconv.ParseUint(digits[16:], 16, 32)
	sec = int64(seconds) - epoch
	return sec, int64(nanos), err1 == nil && err2 == nil && nanos < 1e9 && minSeconds <= sec && sec <= maxSeconds
}
