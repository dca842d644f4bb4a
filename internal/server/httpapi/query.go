package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// readQuery sets c.query, which then has the parameters of the route and no others.
func (c *call) readQuery() (err error) {
	raw := c.r.URL.RawQuery
	if raw == "" && len(c.route.query) == 0 {
		return nil
	}
	if c.query, err = url.ParseQuery(raw); err != nil {
		return badArg("query: %s", clip(err.Error()))
	}
	if !utf8.ValidString(raw) {
		return badArg("query: must be UTF-8")
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) { // of several mistakes, always the same is reported
		i := slices.IndexFunc(c.route.query, func(p parameter) bool { return p.name == name })
		switch {
		case c.route.bouncer():
		case len(c.route.query) == 0:
			return badArg("query: %q: unknown: must be empty", clip(name))
		case i < 0:
			return badArg("query: %q: unknown: must be one of %s", clip(name), c.route.parameters())
		case !c.route.query[i].required && len(c.query[name]) > 1:
			return badArg("query: %s: given %d times: must be given once", name, len(c.query[name]))
		}
	}
	for _, p := range c.route.query {
		if p.required && len(c.query[p.name]) == 0 {
			return badArg("query: %s: missing: must be given, such as %s=%s", p.name, p.name, p.example)
		}
	}
	return nil
}

// parameters returns the names of the parameters of t.
func (t *route) parameters() string {
	var names []string
	for _, p := range t.query {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// number returns a number of the query.
func (c *call) number(name string, byDefault, least, most int) (int, error) {
	v := c.query.Get(name)
	if v == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return 0, badArg("%s: %q: must be %d to %d", name, clip(v), least, most)
	}
	return n, nil
}

// span returns the span of the query.
func (c *call) span(byDefault time.Duration) (time.Duration, error) {
	v := c.query.Get("span")
	if v == "" {
		return byDefault, nil
	}
	d, err := rulevalue.ParseDuration(v)
	if err != nil {
		return 0, badArg("span: %q: must be a duration of 1ms to 3650d, such as 30s, 5m or 24h", clip(v))
	}
	return d, nil
}

// topQuery returns the number of keys and the span of a query for a list.
func (c *call) topQuery(span time.Duration) (n int, d time.Duration, err error) {
	if n, err = c.number("n", 20, 1, 1000); err != nil {
		return 0, 0, err
	}
	d, err = c.span(span)
	return n, d, err
}
