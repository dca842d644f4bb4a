package cli

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
)

const pictureRules = `version: 1
counters:
  requests: {key: client, spans: [1s, 1m, 1h, 24h]}
  paths: {key: path, spans: [1s, 1m, 1h]}
limits:
  - {name: per-client, key: client, limit: 40 per 10s, ban: {after: 100 refusals in 1m, for: 10m, factor: 2, max: 24h}}
  - {name: login, when: {method: POST, path: /login}, key: client, limit: 5 per 10m, ban: {after: 20 refusals in 1m, for: 1h}}
  - {name: search, when: {path: /search}, key: client, limit: 2 per 1s, mode: shadow}
bans:
  - {name: flood, key: client, after: 600 hits in 1m, for: 1h}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 30 per 2s, hold: 60s}
`

// sampleEvents returns the events of the project's own generated sample.
func sampleEvents(t *testing.T, lines int) []map[string]string {
	t.Helper()
	var log bytes.Buffer
	must.Get(accesslogtest.Write(&log, accesslogtest.Config{Lines: lines, Duration: time.Hour}))(t)
	var events []map[string]string
	for line := range strings.Lines(log.String()) {
		if f := strings.Fields(line); len(f) > 8 && strings.HasPrefix(f[5], `"`) {
			path, _, _ := strings.Cut(f[6], "?")
			events = append(events, map[string]string{"client": f[0], "method": f[5][1:], "path": path, "status": f[8]})
		}
	}
	if len(events) < lines*9/10 {
		t.Fatalf("%d events of %d lines", len(events), lines)
	}
	return events
}

// checkAll has the server judge events, several at once.
func checkAll(ctx context.Context, t *testing.T, c *client.Client, events []map[string]string) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range slices.Chunk(events, (len(events)+3)/4) {
		wg.Go(func() {
			for _, e := range part {
				if _, err := c.Check(ctx, e, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestTopOfServer watches a real server that judges the sample. With LATELY_PICTURES
// it judges for half a minute, and what it looks like then is drawn into that folder.
func TestTopOfServer(t *testing.T) {
	s := serve(t, "--rules", writeRules(t, pictureRules))
	c := must.Get(client.New(s.http, client.Config{}))(t)
	defer c.Close()
	folder := os.Getenv("LATELY_PICTURES")
	events := sampleEvents(t, 20_000)
	// The middle of the sample has the crowd that searches and the hot product.
	if folder == "" {
		checkAll(t.Context(), t, c, events[:400])
	} else {
		paced(t, c, events, 30*time.Second)
	}
	login := map[string]string{"client": "203.0.113.254", "method": "POST", "path": "/login"}
	checkAll(t.Context(), t, c, slices.Repeat([]map[string]string{login}, 60))
	must.Get(c.Ban(t.Context(), "per-client", time.Hour, "by hand", "198.51.100.254"))(t)
	reading := must.Get(readTop(t.Context(), c, topWant{span: time.Minute, whole: true}))(t)
	m := newTopModel("http://127.0.0.1:7380", reading.want, newTopPaint(true))
	m.width, m.height, m.live = 120, 34, true
	reading.status.Rules.File = "rules.yaml" // not the test's own folder
	m.read(reading)
	frame := m.View().Content
	fits(t, frame, m.width, m.height)
	plain := unstyled(t, frame)
	for _, want := range []string{"Top keys of requests, last 1m", "203.0.113.254", "198.51.100.254", "search (shadow)", "● live"} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, plain)
		}
	}
	if n := reading.status.Totals.Refused + reading.status.Totals.Banned; n < 50 || reading.held != 2 && folder == "" {
		t.Errorf("%d refused, %d bans; 60 logins are 5 allowed and the rest refused", n, reading.held)
	}
	svg := drawFrame(t, frame, m.width, m.height)
	if folder != "" {
		must.Do(t, os.WriteFile(filepath.Join(folder, "top.svg"), []byte(svg), 0o644))
	}
}

// paced judges events evenly over a time.
func paced(t *testing.T, c *client.Client, events []map[string]string, d time.Duration) {
	t.Helper()
	tick := time.NewTicker(d / 120)
	defer tick.Stop()
	for i := range 120 {
		from, to := i*len(events)/120, (i+1)*len(events)/120
		checkAll(t.Context(), t, c, events[from:to])
		<-tick.C
	}
}

// A cell is one character of a frame, with its style.
type cell struct {
	r           rune
	colour      int // 30 to 37, or 0
	bold, faint bool
}

// cells takes a line of a frame apart.
func cells(t *testing.T, line string) []cell {
	t.Helper()
	var out []cell
	var style cell
	for line != "" {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			codes, after, ok := strings.Cut(rest, "m")
			if !ok {
				t.Fatalf("no style: %q", line)
			}
			for code := range strings.SplitSeq(codes, ";") {
				switch n, _ := strconv.Atoi(code); n {
				case 0:
					style = cell{}
				case 1:
					style.bold = true
				case 2:
					style.faint = true
				case 31, 32, 33, 34, 35, 36, 37:
					style.colour = n
				default:
					t.Fatalf("style %q is not drawn", code)
				}
			}
			line = after
			continue
		}
		r := []rune(line)[0]
		line = line[len(string(r)):]
		style.r = r
		for range lipgloss.Width(string(r)) {
			out = append(out, style)
			style.r = 0 // the other half of a wide one
		}
	}
	return out
}

// The picture of a terminal: sizes in pixels, colours by their SGR codes.
const (
	cellWide, cellHigh = 8.0, 18.0
	margin             = 14.0
	textColour         = "#d7dae0"
	ground             = "#16181d"
)

var colours = map[int]string{0: textColour, 31: "#e5686b", 32: "#7ccf7c", 33: "#e5b567", 34: "#6c9ef8", 35: "#c586c0", 36: "#4fb3bf", 37: textColour}

// drawFrame draws a frame as SVG. Blocks and lines are shapes, so that they meet
// whatever the font is.
func drawFrame(t *testing.T, frame string, width, height int) string {
	t.Helper()
	var b strings.Builder
	w, h := float64(width)*cellWide+2*margin, float64(height)*cellHigh+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="lately top">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	b.WriteString(`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" shape-rendering="crispEdges">` + "\n")
	for y, line := range strings.Split(frame, "\n") {
		drawLine(&b, cells(t, line), margin+float64(y)*cellHigh)
	}
	b.WriteString("</g>\n</svg>\n")
	if err := wellFormed(b.String()); err != nil {
		t.Errorf("the picture is not XML: %v", err)
	}
	return b.String()
}

// drawLine draws runs of one style as text, and box characters as shapes.
func drawLine(b *strings.Builder, line []cell, top float64) {
	for x := 0; x < len(line); {
		c := line[x]
		left := margin + float64(x)*cellWide
		if shape(b, c, left, top) || c.r == ' ' || c.r == 0 {
			x++
			continue
		}
		end := x
		for end < len(line) && like(line[end], c) && !isShape(line[end].r) && (line[end].r != ' ' || end+1 < len(line) && line[end+1].r != ' ' && like(line[end+1], c)) {
			end++
		}
		var text strings.Builder
		for _, c := range line[x:end] {
			if c.r != 0 {
				text.WriteRune(c.r)
			}
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>`, left, top+cellHigh*0.75, float64(end-x)*cellWide, attributes(c))
		_ = xml.EscapeText(b, []byte(text.String()))
		b.WriteString("</text>\n")
		x = end
	}
}

func like(a, b cell) bool { return a.colour == b.colour && a.bold == b.bold && a.faint == b.faint }

func attributes(c cell) string {
	s := fmt.Sprintf(` fill="%s"`, colours[c.colour])
	if c.bold {
		s += ` font-weight="bold"`
	}
	if c.faint {
		s += ` opacity="0.6"`
	}
	return s
}

func isShape(r rune) bool { return r >= '▁' && r <= '▏' || r == '░' || r == '─' || r == '●' }

// shape draws a block, a line or a dot, and reports whether c is one.
func shape(b *strings.Builder, c cell, left, top float64) bool {
	x, y, w, h := left, top, cellWide, cellHigh
	style := attributes(c)
	switch {
	case c.r >= '▁' && c.r <= '█': // from the ground up
		h = cellHigh * float64(c.r-'▁'+1) / 8
		y += cellHigh - h
	case c.r > '█' && c.r <= '▏': // from the left
		w = cellWide * float64('▏'-c.r+1) / 8
	case c.r == '░':
		style += ` fill-opacity="0.4"`
	case c.r == '─':
		y, h = top+cellHigh/2-0.5, 1
	case c.r == '●':
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.6"%s/>`+"\n", left+cellWide/2, top+cellHigh/2, style)
		return true
	default:
		return false
	}
	if isBar := c.r >= '█' && c.r <= '▏' || c.r == '░'; isBar {
		y, h = top+2, cellHigh-2 // bars of two lines do not touch
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"%s/>`+"\n", x, y, w, h, style)
	return true
}

// wellFormed returns why text is not an XML document.
func wellFormed(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}
