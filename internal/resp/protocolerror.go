package resp

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

	faultReplyLine     = "invalid line in a reply"
	faultReplyLong     = "too long line in a reply"
	faultReplyNumber   = "invalid number in a reply"
	faultReplyLength   = "invalid length in a reply"
	faultReplyEnd      = "expected CR LF behind a bulk in a reply"
	faultReplyDepth    = "too deeply nested reply"
	faultReplyElements = "too many elements in a reply"
	faultReplySize     = "too big reply"
	faultReplyPush     = "push inside a reply"
	faultReplyStream   = "streamed replies are not supported"
	faultReplyVerbatim = "verbatim string without a format"
)

// expected returns the reason that another byte stands where want should.
func expected(want string, got byte) string {
	const hex = "0123456789abcdef"
	if got >= ' ' && got < 0x7f {
		return "expected " + want + ", got '" + string(rune(got)) + "'"
	}
	return "expected " + want + `, got '\x` + string([]byte{hex[got>>4], hex[got&15]}) + "'"
}
