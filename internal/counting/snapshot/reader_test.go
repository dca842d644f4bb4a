package snapshot

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestReader(t *testing.T) {
	b := binary.AppendUvarint(nil, math.MaxUint64)
	b = binary.AppendVarint(b, math.MinInt64)
	b = AppendBytes(b, "key")
	b = append(b, 7, 5)
	r := NewReader(b)
	if u, v, k, c, n := r.Uvarint(), r.Varint(), string(r.Bytes(3)), r.Byte(), r.UpTo(5); u != math.MaxUint64 || v != math.MinInt64 || k != "key" || c != 7 || n != 5 || r.Len() != 0 || r.Failed() {
		t.Errorf("read %d %d %q %d %d, %d left", u, v, k, c, n, r.Len())
	}
	for name, bad := range map[string]func(r *Reader) bool{
		"nothing":   func(r *Reader) bool { r.rest = nil; return r.Byte() == 0 },
		"no number": func(r *Reader) bool { r.rest = []byte{0x80}; return r.Uvarint() == 0 },
		"long zero": func(r *Reader) bool { r.rest = []byte{0x80, 0}; return r.Uvarint() == 0 },
		"too much":  func(r *Reader) bool { r.rest = []byte{6}; return r.UpTo(5) == 0 },
		"too long":  func(r *Reader) bool { r.rest = []byte{4, 'a', 'b', 'c', 'd'}; return r.Bytes(3) == nil },
		"too short": func(r *Reader) bool { r.rest = []byte{4, 'a', 'b', 'c'}; return r.Bytes(9) == nil },
	} {
		r := NewReader([]byte{1, 2, 3})
		if !bad(r) || !r.Failed() || r.Len() != 0 || r.Uvarint() != 0 {
			t.Errorf("%s: was read", name)
		}
	}
}
