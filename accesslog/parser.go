package accesslog

import (
	"bytes"
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// Options are the settings of a [Parser]. The zero value is the default.
type Options struct {
	// Year is the year of the first dated line of a yearless format, 1 to
	// 9999. By default, times are in the stand-in calendar of [InYear], for readers
	//       that determine the year later. Formats whose times have a year ignore it.
	Year int

	// Zone is the zone of times without a zone, as in syslog and HAProxy. nil means
	// UTC. Times in the stand-in calendar have no zone.
	Zone *time.Location
}

// A Parser reads lines of one [Format], one at a time: Parse reads a line and
// fills in its first event; Next returns the further events of a line with a
// list.
//
// The cost of a line is linear in its length, for any content. Only scratch memory
// is allocated, and reused. A Parser must not be used by several goroutines at
// once. Make one for each with [Format.NewParser]; for the zero Parser every line
// is bad.
type Parser struct {
	kind  *lineKind
	clock clfClock
	zone  zoneClock
	years sysYears

	spec    *spec
	values  [][]byte // by index in spec.wants
	scratch []byte   // of the values that are not views of the line
	reader  jsonReader
	element int  // index in the line after the last list element
	hasNext bool // a list may have more elements
	skipped bool // the last line is of another kind

	table    *messageTable
	repeats  int         // more events of the line
	tag      []byte      // of an earlier line, up to the number of the process
	tagged   *vocabulary // of its program
	known    bool        // the message is of a program in the table
	yearless bool        // the last event's line names no year
	zoneless bool        // nor a zone

	format   Format
	inner    *Parser      // of the lines that are inside the lines
	patterns *regexReader // of files of patterns
}

// NewParser returns a parser of the format. It returns an error if [Options.Year]
// is out of range.
func (f Format) NewParser(o Options) (*Parser, error) {
	if o.Year != 0 && (o.Year < minYear || o.Year > maxYear) {
		return nil, fmt.Errorf("accesslog: Options.Year is %d; set it to the year of the log's first line, %d to %d, or to 0 when that is not known",
			o.Year, minYear, maxYear)
	}
	p := &Parser{kind: f.kind, clock: newCLFClock(), zone: zoneClock{zone: o.Zone}, years: sysYears{year: o.Year}, format: f, patterns: newRegexReader(f.filters)}
	p.use(f.spec)
	if f.Yearless() || f.kind == journalLines {
		p.table = theMessages()
	}
	if f.inner != nil {
		p.inner, _ = f.inner.NewParser(o) // the year is good
	}
	return p, nil
}

// use makes p read lines of that spec.
func (p *Parser) use(s *spec) {
	p.spec = s
	if s != nil {
		p.values = make([][]byte, len(s.wants))
		p.reader = jsonReader{root: s.root, values: make([]jsonValue, len(s.wants))}
	}
}

// Parse reads one line without its line end (see [CutLine]), and sets ev to its first
// event. If the line is bad, or of another kind (see Skipped), it returns false, and ev
// has no fields. Byte order marks before the line, as in joined files of Windows
// programs, are ignored.
//
// The values of ev are views of line or of memory of p. They are valid until the next
// call of Parse, while line does not change. A value that is empty in the line is empty,
// not nil.
func (p *Parser) Parse(line []byte, ev *match.Event) bool {
	ev.Reset()
	p.hasNext, p.skipped, p.repeats, p.known = false, false, 0, false
	if len(line) > MaxLine {
		return false
	}
	if len(line) > 0 && line[0] == byteOrderMark[0] {
		line = trimMarks(line)
	}
	if p.kind != nil && p.kind.parse(p, line, ev) {
		return true
	}
	p.skipped = p.skipped || len(line) > 0 && line[0] == '#'
	return false
}

// Next sets ev to the next event of the line that Parse read last, or returns false if
// there is none. Only a line whose object is a list has several events, one for each
// element. ev must be the event that Parse filled in, unchanged.
//
// Only the first event of a line has a Client, so that the line counts as one event of
// its client. All events have the other fields.
func (p *Parser) Next(ev *match.Event) bool {
	if p.inner != nil {
		return p.inner.Next(ev)
	}
	if p.repeats > 0 {
		p.repeats--
		return true
	}
	if p.patterns != nil {
		ev.Reset()
		return p.nextFiltered(ev)
	}
	if !p.hasNext {
		return false
	}
	value := p.nextElement()
	if value == nil {
		p.hasNext = false
		return false
	}
	if p.spec.wants[p.spec.object].form == formWhole { // as of most lists: 25 % less time
		ev.Set(match.Client, nil)
		ev.Set(match.Object, value)
		return true
	}
	t := ev.Time
	ev.Reset()
	ev.Time = t
	p.setFields(ev, value)
	ev.Set(match.Client, nil)
	return true
}

// fill sets ev to the event of p.values. It returns false if the line is bad.
func (p *Parser) fill(ev *match.Event) bool {
	wants := p.spec.wants
	sec, nsec, ok := p.time(p.values[0])
	if !ok {
		return false
	}
	for i := range wants {
		if w := &wants[i]; w.must && (p.values[i] == nil || len(p.values[i]) == 0 && !w.mayBeEmpty) {
			return false
		}
	}
	object := p.values[p.spec.object]
	if wants[p.spec.object].list {
		object = p.nextElement()
		p.hasNext = object != nil
	}
	ev.Time = utc(sec, nsec)
	p.setFields(ev, object)
	return true
}

// setFields sets the fields of ev. The object comes first: a field that
// has a place of its own replaces what the object gave.
func (p *Parser) setFields(ev *match.Event, object []byte) {
	wants := p.spec.wants
	if p.spec.object != 0 && len(object) > 0 {
		setObject(ev, object, wants[p.spec.object].form)
	}
	for i := 1; i < len(wants); i++ {
		w, v := &wants[i], p.values[i]
		switch {
		case i == p.spec.object, v == nil, w.name == "", w.dash && len(v) == 1 && v[0] == '-':
		case w.plain:
			ev.Set(w.field, v)
		case w.fallback && has(ev, w):
		case w.form == formForwarded:
			setForwarded(ev, v)
		case w.form == formPeer:
			setPeer(ev, v)
		case w.form == formDuration:
			if v, p.scratch = appendSeconds(p.scratch, v, w.scale); v != nil {
				ev.SetNamed(w.name, v)
			}
		case w.form != formWhole && len(v) == 0:
		case w.form != formWhole:
			setObject(ev, v, w.form)
		case !w.known:
			ev.SetNamed(w.name, v)
		case w.field == match.Client:
			ev.Set(match.Client, clientAddress(v))
		default: // a fallback
			ev.Set(w.field, v)
		}
	}
	eventfield.SplitPath(ev)
}

// has reports whether ev has a value for w already. A target without a path, such as ?a=1,
// is a value: another one's path beside its query would be a request that nobody made.
func has(ev *match.Event, w *want) bool {
	if w.form != formWhole {
		return ev.Get(match.Object) != nil
	}
	if w.known {
		return len(ev.Get(w.field)) > 0
	}
	return len(ev.GetNamed(w.name)) > 0
}

// setObject sets the fields that an object of that form gives.
func setObject(ev *match.Event, object []byte, f form) {
	switch f {
	case formWhole:
		ev.Set(match.Object, object)
	case formPath:
		ev.SetTarget(text(object))
	case formRequest:
		setRequest(ev, object)
	case formURL:
		setURLRequest(ev, object)
	case formURI:
		setURI(ev, object)
	}
}

// otherKind reports whether a line with these values is of another kind.
func (p *Parser) otherKind() bool {
	if !p.spec.selects {
		return false
	}
	for i := range p.spec.wants {
		w, v := &p.spec.wants[i], p.values[i]
		if w.mark && v == nil || w.only != "" && string(v) != w.only || w.others != "" && string(v) == w.others {
			p.skipped = true
			return true
		}
	}
	return false
}

// time reads the time of a line.
func (p *Parser) time(s []byte) (sec, nsec int64, ok bool) {
	switch p.spec.unit {
	case unitS, unitMS, unitUS, unitNS:
		return readDecimal(s, 3*int(p.spec.unit-unitS))
	case unitRFC3339:
		return readISO(s)
	case unitISO:
		return readLooseISO(s)
	case unitCommon:
		return readCommon(s)
	case unitAny:
		if len(s) > len("yyyy") && s[len("yyyy")] == '-' {
			return readLooseISO(s)
		}
		return readDecimal(s, 0)
	case unitCLFMillis:
		sec, nsec, ok = p.clock.readMillis(s)
		return p.zone.seconds(sec), nsec, ok
	case unitLocal:
		sec, nsec, ok = readISO(s)
		return p.zone.seconds(sec), nsec, ok
	}
	return p.clfTime(s)
}

func (p *Parser) clfTime(s []byte) (sec, nsec int64, ok bool) {
	if len(s) != clfLen {
		return 0, 0, false
	}
	sec, result := p.clock.read(s)
	return sec, 0, result == clfValid
}

// Dated returns the times of the first and the last dated line since p was made or
// Reset was called, in the stand-in calendar of [InYear]. A line is dated if it begins
// with a syslog time; ok is false if there was none. Parallel readers of a yearless
// log pass them to [YearsAfter] to join their chunks.
func (p *Parser) Dated() (first, last time.Time, ok bool) {
	if p.inner != nil {
		return p.inner.Dated()
	}
	return utc(p.years.first, 0), utc(p.years.last, 0), p.years.dated
}

// Skipped reports whether the last line for which Parse returned false is not bad but of
// another kind: a line of another program in the same log, a message of the program
// itself, or a comment, which begins with '#'.
func (p *Parser) Skipped() bool { return p.skipped }

// Reset returns p to its initial state: the next dated line is the first, and the
// columns are again as the format has them, whatever a line named.
func (p *Parser) Reset() {
	p.years, p.zone.last = sysYears{year: p.years.year}, 0
	p.hasNext, p.repeats = false, 0
	if p.inner != nil {
		p.inner.Reset()
	}
	if p.spec != p.format.spec {
		p.use(p.format.spec)
	}
}

// MaxLine is the maximum length of a line, 64 KiB without its line end. A
// longer line is bad in every format, and readers skip it without storing it.
const MaxLine = 64 << 10

// CutLine cuts data at its first '\n', which is in neither part, and removes
// one '\r' from the end of the line. When data has no '\n', the line is all of
// data, without a '\r' at its end, rest is empty and ok is false: only the
// caller can tell the last line from a part of a line.
func CutLine(data []byte) (line, rest []byte, ok bool) {
	line, rest, ok = bytes.Cut(data, []byte{'\n'})
	return trimReturn(line), rest, ok
}

const byteOrderMark = "\ufeff"

// trimMarks returns line without the byte order marks in front of it.
func trimMarks(line []byte) []byte {
	for bytes.HasPrefix(line, []byte(byteOrderMark)) {
		line = line[len(byteOrderMark):]
	}
	return line
}

func trimReturn(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
