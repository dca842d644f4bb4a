package latelygrpc

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/lately-go/lately/internal/middleware"
	"github.com/lately-go/lately/ratelimit"
)

type field = middleware.Field[*Call]

// builtin are the fields that every call has.
var builtin = map[string]field{
	"client":  {Bytes: (*Call).caller},
	"host":    {Bytes: hostText},
	"method":  {Text: methodOf},
	"path":    {Text: methodOf},
	"object":  {Text: methodOf},
	"pattern": {Text: methodOf},
	"kind":    {Text: func(c *Call) string { return c.kind }},
	"agent":   {Text: metadataOf("user-agent")},
	"referer": {Text: metadataOf("referer")},
}

func methodOf(c *Call) string { return c.FullMethod }

func hostText(c *Call) []byte {
	c.host = middleware.AppendHost(c.host[:0], authority(c))
	return c.host
}

// authority is the metadata that holds the host.
var authority = metadataOf(":authority")

// metadataOf returns a function that returns the first value of a metadata key.
func metadataOf(key string) func(*Call) string {
	return func(c *Call) string {
		if values := metadata.ValueFromIncomingContext(c.ctx, key); len(values) > 0 {
			return values[0]
		}
		return ""
	}
}

// findField returns a function that finds what fills in the field of a name: the
// function of own, or that of this package. Its error says that calls do not have the
// field.
func findField(own map[string]func(*Call) string) func(name string) (field, error) {
	return func(name string) (field, error) {
		f, ok := builtin[name]
		header, isHeader := strings.CutPrefix(strings.ToLower(name), "header:")
		switch {
		case own[name] != nil:
			f = field{Text: own[name]}
		case ok:
		case isHeader && header == "host":
			f = field{Bytes: hostText}
		case isHeader && header != "":
			f = field{Text: metadataOf(header)}
		default:
			return f, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, kind, host, agent, referer, header:NAME and the names in Config.Fields", name)
		}
		return f, nil
	}
}

// Check returns an error about a rule of s that uses a field that i cannot fill in, so
// that it would never match, or about one with an in-flight limit that would count
// messages. Call it before you change the rules of the limiter to s.
func (i *Interceptor) Check(s *ratelimit.Set) error {
	if err := i.rules.Check(s); err != nil {
		return err
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
