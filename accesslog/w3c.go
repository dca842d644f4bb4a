package accesslog

import (
	"bytes"
	"strings"

	"github.com/lately-go/lately/match"
)

// fieldsDirective begins the line that names the columns of the lines after it, in the Extended
// Log File Format of the W3C, which IIS and CloudFront write.
const fieldsDirective = "#Fields:"

// w3cColumns are the columns that are fields, in lower case.
var w3cColumns = map[string]variable{
	"c-ip":                {want: want{name: "client", dash: true}},
	"cs-method":           fieldVariable("method"),
	"cs-uri-stem":         objectVariable(formURI, 2),
	"cs-uri":              objectVariable(formURI, 1),
	"cs-uri-query":        fieldVariable("query"),
	"cs-version":          fieldVariable("protocol"),
	"cs-protocol-version": fieldVariable("protocol"),
	"cs-username":         fieldVariable("user"),
	"sc-status":           fieldVariable("status"),
	"c-status":            fieldVariable("status"),
	"sc-bytes":            fieldVariable("size"),
	"cs-host":             fieldVariable("host"),
	"cs(host)":            fieldVariable("host"),
	"x-host-header":       {want: want{name: "host", dash: true}, priority: 1}, // of CloudFront; the other is the name of the distribution
	"cs(referer)":         fieldVariable("referer"),
	"cs(referrer)":        fieldVariable("referer"),
	"c-referrer":          fieldVariable("referer"),
	"cs(user-agent)":      fieldVariable("agent"),
	"c-user-agent":        fieldVariable("agent"),
	"x-forwarded-for":     fieldVariable("x_forwarded_for"),
	"s-xff":               fieldVariable("x_forwarded_for"),
	"timetakenms":         durationVariable(3),
}

// A w3cHeader is which columns the lines after a directive have.
type w3cHeader struct {
	wants      []int // by column, the want of it, -1 for none
	date, time int   // columns
	more       bool  // lines may have more columns, and no directive names them: they have tabs
}

// cloudFrontColumns are the columns of CloudFront's standard log, for files without
// their directive.
const cloudFrontColumns = "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) " +
	"cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken"

// w3cSpec returns the spec of lines with these columns, nil if they have no time.
func w3cSpec(columns string) *spec {
	h := &w3cHeader{date: -1, time: -1}
	s := &spec{unit: unitRFC3339, wants: []want{{name: "time"}}, header: h}
	var pieces []piece
	for i, name := range strings.Fields(strings.ToLower(columns)) {
		v := w3cColumns[name]
		switch name {
		case "date", "date-local":
			h.date = i
		case "time", "time-local":
			h.time = i
			if name == "time-local" {
				s.unit = unitLocal
			}
		case "time-taken":
			v = durationVariable(3)
			if strings.Contains(columns, "x-edge-location") { // of CloudFront
				v = durationVariable(0)
			}
		}
		pieces = append(pieces, piece{label: name, variable: v})
	}
	if h.date < 0 || h.time < 0 {
		return nil
	}
	for i, used := range usedPieces(pieces) {
		want := -1
		if used {
			want = s.addVariable(pieces[i].variable)
		}
		h.wants = append(h.wants, want)
	}
	return s.compile()
}

// w3c reads a line of columns with blanks between. A value may be in quotes, and two
// quotes in it stand for one.
func (p *Parser) w3c(line []byte, ev *match.Event) bool {
	if len(line) > 0 && line[0] == '#' {
		if columns, ok := bytes.CutPrefix(line, []byte(fieldsDirective)); ok {
			p.use(p.format.columns(columns))
		}
		p.skipped = true
		return false
	}
	if p.spec == nil || p.spec.header == nil {
		p.skipped = afterBlanks(line, 0) == len(line)
		return false
	}
	if p.spec.header.more && bytes.IndexByte(line, '\t') < 0 {
		return false // any line of many words has these columns
	}
	return p.cutColumns(line) && p.fill(ev)
}

// cutColumns sets the values to those of the columns of a line. It returns false if the line has others.
func (p *Parser) cutColumns(line []byte) bool {
	h := p.spec.header
	clear(p.values)
	p.scratch = p.scratch[:0]
	var date, clock []byte
	column, i := 0, afterBlanks(line, 0)
	for ; i < len(line); column++ {
		if column == len(h.wants) {
			if h.more {
				break
			}
			return false
		}
		var value []byte
		if line[i] == '"' {
			if value, i = p.quotedValue(line, i+1); i < 0 {
				return false
			}
		} else {
			from := i
			for i < len(line) && line[i] != ' ' && line[i] != '\t' {
				i++
			}
			value = line[from:i:i]
		}
		i = afterBlanks(line, i)
		switch want := h.wants[column]; {
		case want > 0:
			p.values[want] = value
		case column == h.date:
			date = value
		case column == h.time:
			clock = value
		}
	}
	if column < len(h.wants) {
		p.skipped = column == 0
		return false
	}
	n := len(p.scratch)
	p.scratch = append(append(append(append(p.scratch, date...), 'T'), clock...), 'Z')
	p.values[0] = p.scratch[n:len(p.scratch):len(p.scratch)]
	return true
}

// afterBlanks returns the index of the first byte of line from i on that is no blank.
func afterBlanks(line []byte, i int) int {
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	return i
}

// columns returns the spec of the lines after a directive. One of CloudFront belongs to
// the format cloudfront only.
func (f Format) columns(directive []byte) *spec {
	isCloudFront := bytes.Contains(directive, []byte("x-edge-location"))
	if isCloudFront != f.kind.cloudFront {
		return nil
	}
	return w3cSpec(string(directive))
}

// After returns the format of the lines that follow lines, which have format f. It
// differs from f only if a line of the log names the columns (w3c, cloudfront) and
// lines contains such a line. Parallel readers need it, since a block of lines may be
// read with the columns that an earlier block named.
func (f Format) After(lines []byte) Format {
	if f.kind == nil || !f.kind.namesColumns || !bytes.Contains(lines, []byte(fieldsDirective)) {
		return f
	}
	for rest := lines; len(rest) > 0; {
		var line []byte
		line, rest, _ = CutLine(rest)
		if columns, ok := bytes.CutPrefix(trimMarks(line), []byte(fieldsDirective)); ok {
			f.spec = f.columns(columns)
		}
	}
	return f
}
