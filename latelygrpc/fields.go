package latelygrpc

import (
	"fmt"
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
// function of own, or the function of this package. It returns an error for a field that
// calls do not have.
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
			return f, fmt.Errorf("unknown field %q in the rules: must be client, method, path, object, pattern, host, agent, referer, header:NAME and the names in Config.Fields", name)
		}
		return f, nil
	}
}

// Check returns an error about a rule of s that uses a field that i cannot fill in, so
// that it would never match. Call it before you change the rules of the limiter to s.
func (i *Interceptor) Check(s *ratelimit.Set) error { return i.rules.Check(s) }
