package resp

import "fmt"

// A ProtocolError says that the peer does not speak the protocol, or asks for
// more than the limits. There is no way to find the next command or reply
// behind it: answer with its text and close the connection. It is returned
// again by every later call.
//
//	if fault, ok := errors.AsType[resp.ProtocolError](err); ok {
//		w.Error("ERR", fault.Error())
//	}
type ProtocolError struct {
	// Reason is what is wrong, in Redis' words where Redis has some.
	Reason string
}

// Error returns the sentence that Redis clients know: "Protocol error: " and
// the reason.
func (e ProtocolError) Error() string { return "Protocol error: " + e.Reason }

// The reasons. Those of Redis are spelled as redis-server spells them.
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

// expectedBulk returns the reason that another byte stands where '$' must.
func expectedBulk(got byte) string {
	if got >= ' ' && got < 0x7f {
		return fmt.Sprintf("expected '$', got '%c'", got)
	}
	return fmt.Sprintf(`expected '$', got '\x%02x'`, got)
}
