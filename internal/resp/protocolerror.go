package resp

import "fmt"

// A ProtocolError means that the peer violates the protocol, or exceeds the limits. The next
// command cannot be found: answer with its text and close the connection. Every later call
// returns it again.
//
//	if fault, ok := errors.AsType[resp.ProtocolError](err); ok {
//		w.Error("ERR", fault.Error())
//	}
type ProtocolError struct {
	Reason string // in the words of Redis if it has the same error
}

// Error returns "Protocol error: ", as Redis does, and the reason.
func (e ProtocolError) Error() string { return "Protocol error: " + e.Reason }

// The reasons. The texts that Redis has are spelled as in redis-server.
const (
	faultCount      = "invalid multibulk length"
	faultLength     = "invalid bulk length"
	faultEnd        = "expected CR LF behind an argument"
	faultCommand    = "too big command"
	faultInline     = "too big inline request"
	faultInlineArgs = "too many arguments in inline request"
	faultInlineArg  = "too big argument in inline request"
	faultQuotes     = "unbalanced quotes in request"
	faultNUL        = "NUL byte in inline request"
	faultHTTP       = "this is not an HTTP port"
)

// expectedBulk returns the reason for a wrong byte instead of '$'.
func expectedBulk(got byte) string {
	if got >= ' ' && got < 0x7f {
		return fmt.Sprintf("expected '$', got '%c'", got)
	}
	return fmt.Sprintf(`expected '$', got '\x%02x'`, got)
}
