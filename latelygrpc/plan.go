package latelygrpc

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A plan is what an Interceptor makes of one Set.
type plan struct {
	set      *ratelimit.Set
	sources  []source
	policies ratelimitheader.Policies
	subjects []string // what the rules count by; empty when hidden
}

// A source is where one field of the event comes from.
type source struct {
	name  string
	field match.Field // when known
	known bool
	kind  sourceKind
	key   string // of metadata
	fn    func(*Call) string
}

type sourceKind uint8

const (
	fromClient sourceKind = iota
	fromMethod
	fromHost
	fromKind
	fromMetadata
	fromFunc
)

// authority is the metadata that holds the host.
const authority = ":authority"

var sources = map[string]source{
	"client":  {kind: fromClient},
	"method":  {kind: fromMethod},
	"path":    {kind: fromMethod},
	"object":  {kind: fromMethod},
	"pattern": {kind: fromMethod},
	"host":    {kind: fromHost},
	"kind":    {kind: fromKind},
	"agent":   {kind: fromMetadata, key: "user-agent"},
	"referer": {kind: fromMetadata, key: "referer"},
}

// newSource returns where the field of that name comes from, or an error that
// says why a call does not have it.
func newSource(name string, own map[string]func(*Call) string) (source, error) {
	s, ok := sources[name]
	header, isHeader := strings.CutPrefix(strings.ToLower(name), "header:")
	switch {
	case own[name] != nil:
		s = source{kind: fromFunc, fn: own[name]}
	case ok:
	case isHeader && header == "host":
		s = source{kind: fromHost}
	case isHeader && header != "":
		s = source{kind: fromMetadata, key: header}
	default:
		return source{}, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, kind, host, agent, referer, header:NAME and the names in Config.Fields", name)
	}
	s.name = name
	s.field, s.known = match.FieldNamed(name)
	return s, nil
}

// Check returns an error that names a rule of s under which calls cannot be
// judged as meant: it looks at a field that i cannot fill in, and would never
// match; or it bounds what is in flight, and would count the messages of a
// stream as well. It is for callers that change the rules of a running limiter.
func (i *Interceptor) Check(s *ratelimit.Set) error {
	for _, name := range s.Fields() {
		if _, err := newSource(name, i.config.Fields); err != nil {
			return err
		}
	}
	if i.config.MessageCost == nil {
		return nil
	}
	for n := range s.Len() {
		if r := s.Rule(n); r.Algorithm == ratelimit.InFlight && !onlyCalls(r) {
			return fmt.Errorf("rule %q: in-flight limit with Config.MessageCost: must have the condition kind: %s, as messages are never in flight", r.Name, kindCall)
		}
	}
	return nil
}

// onlyCalls reports whether r has a condition that no message fulfills.
func onlyCalls(r *ratelimit.Rule) bool {
	return slices.Equal(r.When.Fields["kind"], []string{kindCall})
}

// newPlan returns the plan of set. Fields that come from nowhere stay absent.
func (i *Interceptor) newPlan(set *ratelimit.Set) *plan {
	p := &plan{set: set, policies: ratelimitheader.New(set, i.config.HideNames)}
	for _, name := range set.Fields() {
		if s, err := newSource(name, i.config.Fields); err == nil {
			p.sources = append(p.sources, s)
		}
	}
	for n := range set.Len() {
		subject := set.Rule(n).Key.String()
		if i.config.HideNames {
			subject = ""
		}
		p.subjects = append(p.subjects, subject)
	}
	return p
}

// current returns the plan of the rules that the limiter has now.
func (i *Interceptor) current() *plan {
	set, p := i.limiter.Set(), i.plan.Load()
	if p.set != set {
		p = i.newPlan(set)
		i.plan.Store(p)
	}
	return p
}

// fill makes c's event what p's rules look at.
func (p *plan) fill(c *Call) {
	for i := range p.sources {
		s := &p.sources[i]
		switch s.kind {
		case fromClient:
			s.set(c, c.whoCalls())
		case fromMethod:
			s.setString(c, c.FullMethod)
		case fromHost:
			c.host = appendHost(c.host[:0], first(c, authority))
			s.set(c, c.host)
		case fromKind:
			s.setString(c, c.kind)
		case fromMetadata:
			s.setString(c, first(c, s.key))
		case fromFunc:
			s.setString(c, s.fn(c))
		}
	}
}

func (s *source) set(c *Call, v []byte) {
	if s.known {
		c.event.Set(s.field, v)
	} else {
		c.event.SetNamed(s.name, v)
	}
}

func (s *source) setString(c *Call, v string) {
	if s.known {
		c.event.SetString(s.field, v)
	} else {
		c.event.SetNamedString(s.name, v)
	}
}

// first returns the first value of a metadata key.
func first(c *Call, key string) string {
	if values := metadata.ValueFromIncomingContext(c.ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// appendHost appends host in lower case, without port and final dots: a client
// can write it in any of these ways and is answered the same.
func appendHost(dst []byte, host string) []byte {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	for _, b := range []byte(strings.TrimRight(host, ".")) {
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		dst = append(dst, b)
	}
	return dst
}
