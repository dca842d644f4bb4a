package accesslog

import (
	"bytes"
	"slices"

	"github.com/lately-go/lately/match"
)

// detectBytes bounds what Detect reads, quietBytes what it reads if no line fits, and prefixBytes
// what it reads for each prefix.
const (
	detectBytes = 256 << 10
	quietBytes  = 64 << 10
	prefixBytes = 8 << 10
)

// Detect finds the named format of a log from its first bytes, decompressed; it reads at most 256
// KiB, and 64 KiB if no line in these fits. It ignores a last line without a line end, which may be
// incomplete, unless all lines before it are comments.
//
// The result is the format that fits the most lines, and at least one in ten of those that are not
// empty. A line fits if its client is an address or a host name; at least one line must have an
// address. A line of sshd or of the firewall fits even if it is not an event, and a line of a
// container if the line in it fits. The second result is false if no named format fits. If none
// fits, Detect tries the first 8 KiB without the prefixes that grep or docker compose add, and
// then, if the sample ends with a line end, the formats for logs of any program: text, text-dmy
// and text-mdy. Logs that need a spec are not detected.
func Detect(sample []byte) (Format, bool) {
	sample = sample[:min(len(sample), detectBytes)]
	if whole := sample[:bytes.LastIndexByte(sample, '\n')+1]; !onlyComments(whole) {
		sample = whole
	}
	if f, ok := detectInside(dockerJSON, sample); ok {
		return f, true
	}
	all := newGuesses()
	if f, ok := detect(sample, all); ok {
		return f, true
	}
	start := sample[:min(len(sample), prefixBytes)]
	if whole := bytes.LastIndexByte(start, '\n') + 1; whole > 0 {
		start = start[:whole]
	}
	for _, prefix := range prefixes {
		if f, ok := detectInside(prefix, start); ok {
			return f, true
		}
	}
	if all.quiet() {
		return messages, true
	}
	return detectText(sample)
}

// detectText returns the format of a log that no other format reads: text, or text
// inside the lines of containers or behind a prefix. Dates are read with the month first if more lines fit so.
func detectText(sample []byte) (Format, bool) {
	if !bytes.HasSuffix(sample, []byte{'\n'}) { // what is cut off may be of another format
		return Format{}, false
	}
	if f, ok := detectOrder(sample); ok {
		return f, true
	}
	for _, outer := range append([]Format{dockerJSON}, prefixes...) {
		if f, ok := detectOrder(unwrapped(outer, sample)); ok {
			return outer.with(f), true
		}
	}
	return detect(sample, guesses{newGuess(journaldJSON.with(plainText))})
}

// detectOrder returns the format of text that fits most lines.
func detectOrder(sample []byte) (f Format, ok bool) {
	most := 0
	for _, order := range []Format{plainText, plainTextDMY, plainTextMDY} {
		all := guesses{newGuess(order)}
		if found, fits := detect(sample, all); fits && all[0].lines > most {
			f, ok, most = found, true, all[0].lines
		}
	}
	return f, ok
}

// detectInside returns outer with the format of the lines inside its lines.
func detectInside(outer Format, sample []byte) (Format, bool) {
	inside := unwrapped(outer, sample)
	if len(inside) == 0 {
		return Format{}, false
	}
	inner, ok := detect(inside, newGuesses())
	if !ok && outer.kind == dockerLines { // it may have messages without a time of their own
		return detect(sample, guesses{newGuess(outer.with(messages))})
	}
	if !ok || inner.namesColumns() {
		return Format{}, false
	}
	return outer.with(inner), true
}

// Inside returns f for a log that begins with sample. If the lines of f contain lines
// of another format (docker-json, grep) that its name does not give, [Detect] finds
// that format. Other formats are returned unchanged. The result is false if the inner
// format is unknown: then no line can be parsed.
func (f Format) Inside(sample []byte) (Format, bool) {
	if !f.wraps() || f.kind == journalLines || f.inner != nil {
		return f, true
	}
	found, ok := detectInside(f, sample[:min(len(sample), detectBytes)])
	if !ok {
		return f, false
	}
	return found, true
}

// onlyComments reports whether all lines are empty, or begin with '#'.
func onlyComments(lines []byte) bool {
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = CutLine(lines)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// unwrapped returns the lines inside the lines of f, nil if fewer than one in ten are such
// lines.
func unwrapped(f Format, sample []byte) (inside []byte) {
	p, _ := f.NewParser(Options{}) // the zero Options are good
	lines, wrapped := 0, 0
	for len(sample) > 0 {
		var line []byte
		line, sample, _ = CutLine(sample)
		if len(line) == 0 {
			continue
		}
		lines++
		if inner, _, ok := p.unwrap(trimMarks(line)); ok {
			wrapped++
			inside = append(append(inside, inner...), '\n')
		}
	}
	if wrapped*10 < lines {
		return nil
	}
	return inside
}

// detect returns the format of a guess that fits most lines.
func detect(sample []byte, guesses guesses) (Format, bool) {
	lines, best, fit, size := 0, 0, false, len(sample)
	for len(sample) > 0 && (fit || size-len(sample) < quietBytes) {
		var line []byte
		line, sample, _ = CutLine(sample)
		if len(line) == 0 || line[0] == '#' && guesses.skips(line) {
			continue
		}
		lines++
		for i := range guesses {
			if guesses[i].take(line) {
				fit = true
				break
			}
			fit = fit || guesses[i].known > 0
		}
	}
	guesses.join(commonJSON, logfmt)
	for i := range guesses {
		guesses[i].all = lines
		if guesses[i].names == guesses[i].lines { // another field is where a client is
			guesses[i].lines = 0
		}
		if guesses[i].lines > 0 {
			guesses[i].lines += guesses[i].known
		}
		if guesses[i].lines > guesses[best].lines {
			best = i
		}
	}
	if guesses[best].lines == 0 || guesses[best].lines*10 < lines {
		return Format{}, false
	}
	return guesses[best].format, true
}

// A guess is a format and how many lines it fits.
type guess struct {
	format Format
	parser *Parser
	lines  int
	names  int // of these, how many have the name of a host as their client
	all    int // lines of the sample
	known  int // lines without an event of programs that the format knows
	ev     match.Event
}

type guesses []guess

// quiet reports whether one in ten lines, though no event, is from a program in the table of messages.
func (gs guesses) quiet() bool {
	return slices.ContainsFunc(gs, func(g guess) bool { return g.known > 0 && g.known*10 >= g.all })
}

// join adds the lines of a format to those of another that reads them too, if that has lines of its own.
func (gs guesses) join(part, whole Format) {
	lines := 0
	for i := range gs {
		switch g := &gs[i]; g.format.kind {
		case part.kind:
			lines = g.lines
		case whole.kind:
			if g.lines > 0 {
				g.lines += lines
			}
		}
	}
}

// skips reports whether a line is a comment, which may name the columns of the lines
// after it.
func (gs guesses) skips(line []byte) bool {
	skips := false
	for i := range gs {
		g := &gs[i]
		skips = !g.parser.Parse(line, &g.ev) && g.parser.Skipped() || skips
	}
	return skips
}

// newGuesses returns a guess of each format that is detected by its lines. The first of
// the named formats come last, since they take lines of others, too.
func newGuesses() (all guesses) {
	for _, n := range slices.Backward(named) {
		if (!n.format.wraps() || n.format.kind == journalLines) && n.format.kind.order == noOrder {
			all = append(all, newGuess(n.format))
		}
	}
	return all
}

func newGuess(f Format) guess {
	p, _ := f.NewParser(Options{})
	return guess{format: f, parser: p}
}

// take counts a line if it fits, and reports whether it does.
func (g *guess) take(line []byte) bool {
	if !g.parser.Parse(line, &g.ev) {
		if g.parser.known {
			g.known++
		}
		return false
	}
	switch client := g.ev.Get(match.Client); {
	case len(client) == 0, string(client) == "-", string(client) == "unix:", isAddress(client):
	case isHostName(client):
		g.names++
	default:
		return false
	}
	g.lines++
	return true
}

// isHostName reports whether s can be the name of a host in the DNS: letters, digits, '-' and '_',
// with a dot between, and a last label that is no number.
func isHostName(s []byte) bool {
	last := bytes.LastIndexByte(s, '.') + 1
	if last <= 1 || last == len(s) || isDigit(s[last]) || len(s) > 253 {
		return false
	}
	for i, c := range s {
		if !isDigit(c) && !isLower(c|' ') && c != '-' && c != '_' && (c != '.' || i > 0 && s[i-1] == '.') {
			return false
		}
	}
	return true
}
