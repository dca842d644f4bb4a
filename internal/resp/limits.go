package resp

import "cmp"

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits bounds the commands that a [Reader] accepts. A field that is 0 has its default.
// All limits apply: a Command of 1000 bytes has no argument of 2000, whatever Bulk is.
type Limits struct {
	Bulk   int // bytes of one argument: 64 KiB by default
	Args   int // arguments of one command, its name included: 1024 by default
	Inline int // bytes of an inline command, without its line end: 64 KiB by default

	// Command is the bytes of one command as sent, with lengths and line ends: 1 MiB by
	// default. A Reader buffers no more than the larger of this and Inline.
	Command int

	// Buffer is the first size of the read buffer in bytes, to which it shrinks again: 16
	// or more, 4 KiB by default.
	Buffer int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Bulk:    cmp.Or(l.Bulk, 64*kib),
		Args:    cmp.Or(l.Args, 1024),
		Inline:  cmp.Or(l.Inline, 64*kib),
		Command: cmp.Or(l.Command, mib),
		Buffer:  cmp.Or(l.Buffer, 4*kib),
	}
}

// largest returns the size of a buffer that holds any command within l.
func (l Limits) largest() int { return max(l.Command, l.Inline+len("\r\n"), l.Buffer) }
