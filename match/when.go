package match

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/address"
)

// When selects the events of a rule. Each part that is given must hold; a part with
// several values holds if one of them does. The zero When holds for every event.
type When struct {
	// Method are request methods, compared exactly: "GET", "POST".
	Method []string
	// Path are patterns of the decoded path without dot segments
	// ([Event.CleanPath]). Where servers differ about the path that a target names,
	// as for "/x\..\login", one of their readings must match. '*' stands for any run
	// of bytes within a segment, "**" for any run; every other byte stands for
	// itself. "/login" is exact, "/api/**" is everything below /api/. A pattern that
	// begins with "(?i)" matches ASCII letters of either case.
	Path []string
	// Status are response statuses: "404", a class "5xx" or a range "500-504".
	Status []string
	// Client is addresses and CIDR prefixes. A prefix of IPv4-mapped IPv6 addresses matches the
	// IPv4 addresses. A client that is not an address never matches.
	Client []netip.Prefix
	// Fields has patterns, written as in Path, for other fields by name, at
	// least one for each. The path field, if named here, is matched as the
	// client sent it. In a pattern of agent, '*' matches '/' too.
	Fields map[string][]string
	// Any are alternatives: one must hold.
	Any []When
	// Not are exceptions: each must not hold.
	Not []When
}

func (w *When) isZero() bool {
	return len(w.Method) == 0 && len(w.Path) == 0 && len(w.Status) == 0 &&
		len(w.Client) == 0 && len(w.Fields) == 0 && len(w.Any) == 0 && len(w.Not) == 0
}

// A Condition is a compiled [When]. The zero Condition holds for every event.
// A Condition is immutable and safe for concurrent use; it does not allocate.
type Condition struct {
	methods  []pattern // exact
	paths    []pattern
	statuses []statusRange
	clients  address.Set
	fields   []fieldPatterns
	any, not []Condition
	some     bool // one of these is not empty
}

type fieldPatterns struct {
	ref      ref
	patterns []pattern
}

// Compile returns w's Condition. The error names the bad part and what it must be.
func (w When) Compile() (Condition, error) {
	c := Condition{some: !w.isZero()}
	for _, m := range w.Method {
		if m == "" {
			return Condition{}, fmt.Errorf("method: empty: must be a method such as GET")
		}
		c.methods = append(c.methods, pattern{exactPattern, []byte(m)})
	}
	for _, p := range w.Path {
		if text := strings.TrimPrefix(p, anyCase); text == "" || text[0] != '/' && text[0] != '*' {
			return Condition{}, fmt.Errorf("path: %q: must be a pattern that begins with '/' or '*'", p)
		}
		c.paths = append(c.paths, newPattern(p))
	}
	for _, s := range w.Status {
		r, err := parseStatus(s)
		if err != nil {
			return Condition{}, err
		}
		c.statuses = append(c.statuses, r)
	}
	for _, p := range w.Client {
		if !p.IsValid() {
			return Condition{}, fmt.Errorf("client: invalid prefix: must be an address or a CIDR prefix")
		}
	}
	c.clients = address.NewSet(w.Client...)
	for _, name := range slices.Sorted(maps.Keys(w.Fields)) {
		if name == "" {
			return Condition{}, fmt.Errorf("field: empty name: must be the name of a field")
		}
		if len(w.Fields[name]) == 0 {
			return Condition{}, fmt.Errorf("field %q: no pattern: must have at least one", name)
		}
		fp := fieldPatterns{ref: newRef(name)}
		for _, p := range w.Fields[name] {
			if fp.ref.field == Agent { // which is no path
				p = strings.ReplaceAll(p, "*", "**")
			}
			fp.patterns = append(fp.patterns, newPattern(p))
		}
		c.fields = append(c.fields, fp)
	}
	var err error
	if c.any, err = compileAll("any", w.Any); err == nil {
		c.not, err = compileAll("not", w.Not)
	}
	return c, err
}

func compileAll(what string, ws []When) (all []Condition, err error) {
	for _, w := range ws {
		c, err := w.Compile()
		if err == nil && !c.some {
			err = errors.New("empty: must have a field")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Holds reports whether c holds for e. A part that needs a field which e lacks
// does not hold.
func (c *Condition) Holds(e *Event) bool { return !c.some || c.holds(e) }

func (c *Condition) holds(e *Event) bool {
	return (len(c.methods) == 0 || anyMatches(c.methods, e.known[Method])) &&
		c.holdsPath(e) && c.holdsStatus(e) &&
		(c.clients.IsEmpty() || c.clients.Contains(e.known[Client])) &&
		c.holdsFields(e) &&
		(len(c.any) == 0 || anyHolds(c.any, e)) && !anyHolds(c.not, e)
}

func anyHolds(cs []Condition, e *Event) bool {
	for i := range cs {
		if cs[i].holds(e) {
			return true
		}
	}
	return false
}

func (c *Condition) holdsPath(e *Event) bool {
	if len(c.paths) == 0 || anyMatches(c.paths, e.CleanPath()) {
		return true
	}
	return slices.ContainsFunc(e.otherPaths(), func(p []byte) bool { return anyMatches(c.paths, p) })
}

func (c *Condition) holdsStatus(e *Event) bool {
	if len(c.statuses) == 0 {
		return true
	}
	n, ok := atoi(e.known[Status])
	return ok && slices.ContainsFunc(c.statuses, func(r statusRange) bool { return r.from <= n && n <= r.to })
}

func (c *Condition) holdsFields(e *Event) bool {
	for i := range c.fields {
		v := c.fields[i].ref.get(e)
		if len(v) == 0 || !anyMatches(c.fields[i].patterns, v) {
			return false
		}
	}
	return true
}

type statusRange struct{ from, to int }

// maxStatus is the largest status of HTTP. The smallest is 100, but logs may have 000 for a request
// without a response.
const maxStatus = 599

func parseStatus(s string) (statusRange, error) {
	lo, hi, isRange := strings.Cut(s, "-")
	if !isRange {
		hi = lo
		if len(s) == 3 && strings.EqualFold(s[1:], "xx") && s[0] != '0' {
			lo, hi = s[:1]+"00", s[:1]+"99"
		}
	}
	from, ok := atoi([]byte(lo))
	to, ok2 := atoi([]byte(hi))
	if !ok || !ok2 || len(lo) != 3 || len(hi) != 3 || to < from || to > maxStatus {
		return statusRange{}, fmt.Errorf("status: %q: must be a status such as 404, a class such as 5xx or a range such as 500-504, up to %d", s, maxStatus)
	}
	return statusRange{from, to}, nil
}

// atoi parses up to six decimal digits.
func atoi(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 6 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
