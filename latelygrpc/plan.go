package latelygrpc

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A plan is what an Interceptor derives from one Set.
type plan struct {
	set      *ratelimit.Set
	sources  []source
	policies ratelimitheader.Policies
}

// A source is where one field of the event comes from.
type source struct {
	name string
	kind sourceKind
	text func(*Call) string // for fromText
}

// A sourceKind says whether a field is written into memory, as a client and a host, or
// is a part of the call.
type sourceKind uint8

const (
	fromText sourceKind = iota
	fromClient
	fromHost
)

var sources = map[string]source{
	"client":  {kind: fromClient},
	"host":    {kind: fromHost},
	"method":  {text: methodOf},
	"path":    {text: methodOf},
	"object":  {text: methodOf},
	"pattern": {text: methodOf},
	"kind":    {text: func(c *Call) string { return c.kind }},
	"agent":   {text: metadataOf("user-agent")},
	"referer": {text: metadataOf("referer")},
}

func methodOf(c *Call) string { return c.FullMethod }

// metadataOf returns a function that returns the first value of a metadata key.
func metadataOf(key string) func(*Call) string {
	return func(c *Call) string {
		if values := metadata.ValueFromIncomingContext(c.ctx, key); len(values) > 0 {
			return values[0]
		}
		return ""
	}
}

// authority is the metadata that holds the host.
var authority = metadataOf(":authority")

// newSource returns the source of a field, or an error if calls do not have it.
func newSource(name string, own map[string]func(*Call) string) (source, error) {
	s, ok := sources[name]
	header, isHeader := strings.CutPrefix(strings.ToLower(name), "header:")
	switch {
	case own[name] != nil:
		s = source{text: own[name]}
	case ok:
	case isHeader && header == "host":
		s = source{kind: fromHost}
	case isHeader && header != "":
		s = source{text: metadataOf(header)}
	default:
		return source{}, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, kind, host, agent, referer, header:NAME and the names in Config.Fields", name)
	}
	s.name = name
	return s, nil
}

// Check returns an error about a rule of s that uses a field that i cannot fill in, so
// that it would never match, or about one with an in-flight limit that would count
// messages. Call it before you change the rules of the limiter to s.
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

// onlyCalls reports whether r has a condition that no message meets.
func onlyCalls(r *ratelimit.Rule) bool {
	return slices.Equal(r.When.Fields["kind"], []string{kindCall})
}

// newPlan returns the plan of set. Fields without a source stay absent.
func (i *Interceptor) newPlan(set *ratelimit.Set) *plan {
	p := &plan{set: set, policies: ratelimitheader.New(set, i.config.HideNames)}
	for _, name := range set.Fields() {
		if s, err := newSource(name, i.config.Fields); err == nil {
			p.sources = append(p.sources, s)
		}
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

// fill gives c's event the fields that p's rules look at.
func (p *plan) fill(c *Call) {
	for i := range p.sources {
		s := &p.sources[i]
		switch s.kind {
		case fromClient:
			c.event.SetNamed(s.name, c.whoCalls())
		case fromHost:
			c.host = clientaddr.AppendHost(c.host[:0], authority(c))
			c.event.SetNamed(s.name, c.host)
		default:
			c.event.SetNamedString(s.name, s.text(c))
		}
	}
}
