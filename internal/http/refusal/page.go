package refusal

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// A Page is an HTML page for the refused requests of browsers.
type Page struct {
	texts  []string // before each placeholder, and behind the last
	places []string // the names of the placeholders
}

var placeholder = regexp.MustCompile(`\{\{[ \t]*(\w*)[ \t]*\}\}`)

// NewPage returns the page of an HTML text with placeholders. The error names an unknown one and its line.
func NewPage(text string) (*Page, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("empty: must be an HTML page")
	}
	p, last := new(Page), 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		if name != "retry_after" && name != "status" && name != "title" {
			return nil, fmt.Errorf("line %d: %s: must be {{retry_after}}, {{status}} or {{title}}", 1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]])
		}
		p.texts, p.places, last = append(p.texts, text[last:at[0]]), append(p.places, name), at[1]
	}
	p.texts = append(p.texts, text[last:])
	return p, nil
}

// append appends the page for a refusal. The inserted values are escaped.
func (p *Page) append(buf []byte, problem *problem, retryAfter []string) []byte {
	for i, name := range p.places {
		buf = append(buf, p.texts[i]...)
		switch name {
		case "retry_after":
			buf = append(buf, html.EscapeString(strings.Join(retryAfter, ""))...)
		case "status":
			buf = strconv.AppendInt(buf, int64(problem.status), 10)
		case "title":
			buf = append(buf, html.EscapeString(problem.title)...)
		}
	}
	return append(buf, p.texts[len(p.texts)-1]...)
}

// prefersPage reports whether a client asks for HTML by name, and at least as much as for JSON: browsers do,
// and programs that accept anything do not.
func prefersPage(h http.Header) bool {
	page, json := 0.0, 0.0
	for _, line := range h["Accept"] {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "text/html", "application/xhtml+xml":
				page = max(page, weight(params))
			case "application/json", problemMedia:
				json = max(json, weight(params))
			}
		}
	}
	return page > 0 && page >= json
}

// weight returns the q in the parameters of a media type: 1 without one, and 0 if it is not a
// number from 0 to 1.
func weight(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || !(0 <= q && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}
