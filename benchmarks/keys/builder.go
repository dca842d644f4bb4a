package keys

import (
	"strings"
	"unsafe"
)

// A Builder writes the keys "user:000000" to "user:999999", or with as many
// digits as n of them need, into one buffer. It is for one goroutine.
type Builder struct{ buf []byte }

const prefix = "user:"

// NewBuilder returns a Builder of n keys.
func NewBuilder(n int) *Builder {
	digits := 6
	for p := 1_000_000; p < n; p *= 10 {
		digits++
	}
	// Of the buffer's 128 bytes the key is the first: no other builder shares
	// its cache line.
	buf := make([]byte, len(prefix)+digits, 128)
	copy(buf, prefix)
	return &Builder{buf}
}

// Key returns the key of that number, in the buffer: it is good until the next
// call.
func (b *Builder) Key(id uint32) string {
	for i := len(b.buf) - 1; i >= len(prefix); i-- {
		b.buf[i] = '0' + byte(id%10)
		id /= 10
	}
	return unsafe.String(&b.buf[0], len(b.buf))
}

// All returns the first n keys as strings of their own.
func All(n int) []string {
	b := NewBuilder(n)
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Clone(b.Key(uint32(i)))
	}
	return all
}
