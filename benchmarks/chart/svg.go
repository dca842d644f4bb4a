package main

import (
	"fmt"
	"html"
	"strings"
)

// A card is an SVG picture being drawn. It has a background of its own, light
// or dark as the reader's system asks, so that it can be read on any page.
type card struct {
	strings.Builder
	width, height int
}

const (
	margin = 24
	font   = 13 // size of most text
)

// style names the colours once. Series beyond our own rows are told apart by
// their dashes, too, not by colour alone.
const style = `<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.soft { fill: #59636e }
.end { text-anchor: end }
.mid { text-anchor: middle }
.card { fill: #ffffff; stroke: #d1d9e0 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.ours { fill: #0969da } .peer { fill: #8c959f } .floor { fill: #c8cfd6 }
.line { fill: none; stroke-width: 2; stroke: #6e7781 }
.line.ours { stroke: #0969da; stroke-width: 3; fill: none }
.line.floor { stroke: #afb8c1; fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.soft { fill: #9198a1 }
.card { fill: #0d1117; stroke: #3d444d }
.grid { stroke: #3d444d }
.ours { fill: #4493f8 } .peer { fill: #6e7681 } .floor { fill: #3d444d }
.line { stroke: #9198a1; fill: none }
.line.ours { stroke: #4493f8; fill: none }
.line.floor { stroke: #59636e; fill: none }
}
</style>
`

// newCard begins a picture with three lines of text: what it shows, how to read
// it, and on which machine it was measured.
func newCard(width, height int, title [3]string) *card {
	c := &card{width: width, height: height}
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(strings.Join(title[:], ". ")))
	c.put("%s", style)
	c.put(`<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for i, text := range title {
		c.text(margin, float64(34+19*i), []string{"title", "soft", "soft"}[i], "%s", text)
	}
	return c
}

func (c *card) put(format string, args ...any) { fmt.Fprintf(c, format, args...) }

func (c *card) text(x, y float64, class, format string, args ...any) {
	c.put(`<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(fmt.Sprintf(format, args...)))
}

func (c *card) rect(x, y, width, height float64, class string) {
	c.put(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" class="%s"/>`+"\n", x, y, width, height, class)
}

func (c *card) rule(x1, y1, x2, y2 float64) {
	c.put(`<path class="grid" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", x1, y1, x2, y2)
}

// done closes the picture.
func (c *card) done() string {
	c.put("</svg>\n")
	return c.String()
}

// kind says how a row is drawn.
type kind string

const (
	isOurs  kind = "ours"
	isPeer  kind = "peer"
	isFloor kind = "floor"
)

func kindOf(subject string) kind {
	switch {
	case strings.HasPrefix(subject, "lately."), strings.HasPrefix(subject, "ratelimit,"):
		return isOurs
	case strings.Contains(subject, "time.Since"), strings.HasPrefix(subject, "hash"), strings.HasPrefix(subject, "atomic"):
		return isFloor
	}
	return isPeer
}
