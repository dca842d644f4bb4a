package latelygrpc

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/match"
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
		if values := c.metadata(key); len(values) > 0 {
			return values[0]
		}
		return ""
	}
}

// findField returns a function that finds what fills in a field: the function of own, the
// metadata that is declared, or the function of this package. It returns an error for a
// field that calls do not have.
func findField(own map[string]func(*Call) string) middleware.Finder[*Call] {
	return func(declared match.Source) (field, error) {
		name := declared.Field
		f, ok := builtin[name]
		switch {
		case own[name] != nil:
			f = field{Text: own[name]}
		case declared.Query != "":
			return f, fmt.Errorf("field %q in the rules: calls have no query: must be in metadata or in Config.Fields", name)
		case intake.FromRequest(&declared):
			f = field{Text: partOf(declared)}
		case ok:
		default:
			return f, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, host, agent, referer, a name in Config.Fields, or declared with the metadata that has it", name)
		}
		return f, nil
	}
}

// partOf returns a function that returns the metadata that is declared.
func partOf(declared match.Source) func(*Call) string {
	switch {
	case declared.Bearer:
		return func(c *Call) string { return middleware.Bearer(c.metadata("authorization")) }
	case declared.Cookie != "":
		return func(c *Call) string { return middleware.Cookie(c.metadata("cookie"), declared.Cookie) }
	}
	header := strings.ToLower(declared.Header)
	return func(c *Call) string { return middleware.Single(c.metadata(header)) }
}

func (c *Call) metadata(key string) []string { return metadata.ValueFromIncomingContext(c.ctx, key) }

// Check returns an error if a rule of s uses a field that i cannot fill in: such a
// rule would never match. Call it before you change the rules of the limiter to s.
func (i *Interceptor) Check(s *ratelimit.Set) error { return i.rules.Check(s) }
