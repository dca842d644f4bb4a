package resp

// A Decision is the answer to TAKE and CHECK as the wire has it, an array of
// seven in both versions:
//
//	allowed, limit, remaining, retry-after, reset-after, rule, banned-until
//
// All are integers but the rule's name, which is a bulk string. An admitted event that
// has to wait has an eighth element, delay.
type Decision struct {
	Allowed     bool   // 1 or 0 on the wire
	Limit       int64  // of the deciding rule
	Remaining   int64  // hits left under it
	RetryAfter  int64  // milliseconds; -1: never
	ResetAfter  int64  // milliseconds
	Rule        string // name of the deciding rule, "" for none
	BannedUntil int64  // milliseconds since 1970; 0: not banned
	Delay       int64  // milliseconds; 0: none, and no element
}

const (
	allowedHead = "*7\r\n:1\r\n:"
	refusedHead = "*7\r\n:0\r\n:"
	delayedHead = "*8\r\n:1\r\n:"
)

// Decision appends an array of seven, or of eight for an admitted event with a delay.
// It is what so many calls would append, in one step: the reply that a server under
// load sends most.
func (w *Writer) Decision(d *Decision) {
	b := w.space(len(allowedHead) + 8*headRoom + len(d.Rule))
	delayed := d.Allowed && d.Delay > 0
	switch {
	case delayed:
		b = append(b, delayedHead...)
	case d.Allowed:
		b = append(b, allowedHead...)
	default:
		b = append(b, refusedHead...)
	}
	b = append(appendInt(b, d.Limit), "\r\n:"...)
	b = append(appendInt(b, d.Remaining), "\r\n:"...)
	b = append(appendInt(b, d.RetryAfter), "\r\n:"...)
	b = append(appendInt(b, d.ResetAfter), '\r', '\n')
	b = append(appendBulk(b, d.Rule), ':')
	b = append(appendInt(b, d.BannedUntil), '\r', '\n')
	if delayed {
		b = append(appendInt(append(b, ':'), d.Delay), '\r', '\n')
	}
	w.buf = b
}
