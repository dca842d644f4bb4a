package accesslog

import (
	"bytes"
	"slices"

	"github.com/lately-go/lately/match"
)

// detectBytes bounds what Detect reads.
const detectBytes = 256 << 10

// Detect finds the named format of a log from its first bytes, decompressed;
// it reads 256 KiB at most. It ignores a last line without a line end, which may be cut
// off, unless it is the only one that is no comment.
//
// The format is the one that fits most of the lines; it must fit one in ten of those
// that are not empty. A line fits if its client is an address, or the name of a host; of
// all lines at least one must have an address. A line of sshd or of the firewall fits even if it is not an event,
// and a line of a container if the line in it fits. The second result is false if no named
// format fits. Logs that need a spec are not detected.
func Detect(sample []byte) (Format, bool) {
	sample = sample[:min(len(sample), detectBytes)]
	if whole := sample[:bytes.LastIndexByte(sample, '\n')+1]; !onlyComments(whole) {
		sample = whole
	}
	if inside := unwrapped(sample); len(inside) > 0 {
		inner, ok := detect(inside)
		if !ok || inner.dependsOnOthers() {
			return Format{}, false
		}
		return dockerJSON.with(inner), true
	}
	return detect(sample)
}

// Inside returns f for a log that begins with sample. If the lines of f hold lines of
// another format, which its name leaves open (docker-json), that is the one that Detect
// finds. Other formats are returned as they are. The result is false if the format inside
// is not known: then no line can be parsed.
func (f Format) Inside(sample []byte) (Format, bool) {
	if f.kind != dockerLines || f.inner != nil {
		return f, true
	}
	found, ok := Detect(sample)
	if !ok || found.kind != dockerLines {
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

// unwrapped returns the lines inside the lines of a container, nil if fewer than one in
// ten are such lines.
func unwrapped(sample []byte) (inside []byte) {
	p, _ := dockerJSON.NewParser(Options{}) // the zero Options are good
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

func detect(sample []byte) (Format, bool) {
	guesses := newGuesses()
	lines, best := 0, 0
	for len(sample) > 0 {
		var line []byte
		line, sample, _ = CutLine(sample)
		if len(line) == 0 || line[0] == '#' && guesses.skips(line) {
			continue
		}
		lines++
		for i := range guesses {
			if guesses[i].take(line) {
				break
			}
		}
	}
	for i := range guesses {
		if guesses[i].names == guesses[i].lines { // another field is where a client is
			guesses[i].lines = 0
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
	ev     match.Event
}

type guesses []guess

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
		if n.format.kind != dockerLines {
			p, _ := n.format.NewParser(Options{})
			all = append(all, guess{format: n.format, parser: p})
		}
	}
	return all
}

// take counts a line if it fits, and reports whether it does.
func (g *guess) take(line []byte) bool {
	if !g.parser.Parse(line, &g.ev) {
		if g.parser.known {
			g.lines++
		}
		return g.parser.known
	}
	if g.format.kind == clf.kind && isHostFirst(line) {
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

// isHostFirst reports whether a line begins with a host and the address of a client: it
// fits clf, but its client would be the host.
func isHostFirst(line []byte) bool {
	first, rest, _ := bytes.Cut(bytes.TrimLeft(line, " "), []byte{' '})
	second, _, _ := bytes.Cut(rest, []byte{' '})
	_, isClient := match.ParseAddr(string(first))
	_, hasClient := match.ParseAddr(string(second))
	return hasClient && !isClient
}
