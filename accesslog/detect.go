package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// detectBytes bounds what Detect reads.
const detectBytes = 256 << 10

// detectOrder is the order in which Detect tries the formats on a line: clf after
// the two that are like it, because it also takes most of their lines.
var detectOrder = []Format{clfQuoted, clfVHost, clf, jsonNginx, jsonZeekDNS, syslogSSHD, syslogUFW}

// Detect finds the named format of a log from its first bytes, decompressed;
// it reads 256 KiB at most. It ignores a last line without a line end, which may be cut
// off, unless it is the only one.
//
// The format is the one that fits most of the lines; it must fit one in ten of those
// that are not empty. A line of sshd or of the firewall fits even if it is not an event.
// The second result is false if no named format fits. Logs that need a spec are not
// detected.
func Detect(sample []byte) (Format, bool) {
	sample = sample[:min(len(sample), detectBytes)]
	if last := bytes.LastIndexByte(sample, '\n'); last >= 0 {
		sample = sample[:last+1]
	}
	guesses := newGuesses()
	lines, best := 0, 0
	for len(sample) > 0 {
		var line []byte
		line, sample, _ = CutLine(sample)
		if len(line) == 0 {
			continue
		}
		lines++
		for i := range guesses {
			if guesses[i].knows(line) {
				guesses[i].lines++
				break
			}
		}
	}
	for i := range guesses {
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
	ev     match.Event
}

func newGuesses() []guess {
	guesses := make([]guess, len(detectOrder))
	for i, f := range detectOrder {
		p, _ := f.NewParser(Options{}) // the zero Options are good
		guesses[i] = guess{format: f, parser: p}
	}
	return guesses
}

func (g *guess) knows(line []byte) bool {
	if !g.format.Yearless() {
		return g.parser.Parse(line, &g.ev)
	}
	line = trimMarks(line)
	_, dated := readSysStamp(line)
	return dated && g.format.kind.knows(line)
}
