package resp

import "fmt"

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits bounds what a [Reader] takes from a peer. The zero value of every
// field stands for its default. The narrowest limit decides: a Command of
// 1000 bytes holds no argument of 2000, whatever Bulk says.
type Limits struct {
	// Bulk is the most bytes of one argument: 1 to 512 MiB, by default 64 KiB.
	Bulk int
	// Args is the most arguments of one command, its name included: 1 to
	// 1 Mi, by default 1024.
	Args int
	// Inline is the most bytes of an inline command, without its line end:
	// 1 to 512 MiB, by default 64 KiB.
	Inline int
	// Command is the most bytes of one command as sent, with all its lengths
	// and line ends: 64 to 512 MiB, by default 1 MiB. A connection that sends a
	// command without ever ending it makes a Reader buffer no more than the
	// larger of this and Inline.
	Command int
	// Buffer is the size in bytes that the read buffer begins with and
	// returns to: 16 to 1 MiB, by default 4 KiB.
	Buffer int
}

// withDefaults returns l with its zero fields filled in. The error names the
// field that is out of range.
func (l Limits) withDefaults() (Limits, error) {
	err := applyDefaults("Limits", []bound{
		{"Bulk", &l.Bulk, 1, 512 * mib, 64 * kib},
		{"Args", &l.Args, 1, mib, 1024},
		{"Inline", &l.Inline, 1, 512 * mib, 64 * kib},
		{"Command", &l.Command, 64, 512 * mib, mib},
		{"Buffer", &l.Buffer, 16, mib, 4 * kib},
	})
	return l, err
}

// largest returns the size of a buffer that holds any command within l.
func (l Limits) largest() int { return max(l.Command, l.Inline+len("\r\n"), l.Buffer) }

// ReplyLimits bounds what a [ReplyReader] takes from a server. The zero value
// of every field stands for its default. Nesting is bounded too, by 32.
type ReplyLimits struct {
	// Reply is the most bytes of one reply as sent, with all that is in it:
	// 64 to 512 MiB, by default 64 MiB.
	Reply int
	// Elements is the most values of one reply, all levels and attributes
	// counted: 1 to 16 Mi, by default 1 Mi. Each takes 64 bytes.
	Elements int
	// Line is the most bytes of a simple string, an error or a number: 32 to
	// 1 MiB, by default 64 KiB.
	Line int
	// Buffer is the size in bytes that the read buffer begins with and returns
	// to: 16 to 1 MiB, by default 4 KiB.
	Buffer int
}

// withDefaults returns l with its zero fields filled in. The error names the
// field that is out of range.
func (l ReplyLimits) withDefaults() (ReplyLimits, error) {
	err := applyDefaults("ReplyLimits", []bound{
		{"Reply", &l.Reply, 64, 512 * mib, 64 * mib},
		{"Elements", &l.Elements, 1, 16 * mib, mib},
		{"Line", &l.Line, 32, mib, 64 * kib},
		{"Buffer", &l.Buffer, 16, mib, 4 * kib},
	})
	return l, err
}

// A bound is what a field may be, and what it is when it is 0.
type bound struct {
	name              string
	value             *int
	least, most, none int
}

func applyDefaults(owner string, bounds []bound) error {
	for _, b := range bounds {
		if *b.value == 0 {
			*b.value = b.none
		}
		if *b.value < b.least || *b.value > b.most {
			return fmt.Errorf("resp: %s.%s is %d; it must be from %d to %d, or 0 for %d", owner, b.name, *b.value, b.least, b.most, b.none)
		}
	}
	return nil
}
