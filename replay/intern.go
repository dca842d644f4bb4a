package replay

import "strings"

// interner numbers the distinct values of one field, from 1; 0 is no value.
type interner struct {
	ids    map[string]uint32
	values []string         // by number; number 0 has none
	text   *strings.Builder // of copies of the newest values; nil if values are not copied
}

func newInterner() *interner {
	return &interner{ids: make(map[string]uint32), values: []string{""}}
}

func (in *interner) id(value []byte) uint32 {
	if id, ok := in.ids[string(value)]; ok {
		return id
	}
	return in.add(string(value))
}

// textBytes is how many bytes of values are in one piece of memory.
const textBytes = 16 << 10

// idOf is id without a copy of the value, unless in copies it.
func (in *interner) idOf(value string) uint32 {
	if id, ok := in.ids[value]; ok {
		return id
	}
	return in.add(value)
}

func (in *interner) add(value string) uint32 {
	if in.text != nil {
		if in.text.Cap()-in.text.Len() < len(value) {
			in.text.Reset()
			in.text.Grow(max(textBytes, len(value)))
		}
		in.text.WriteString(value)
		value = in.text.String()[in.text.Len()-len(value):]
	}
	id := uint32(len(in.values))
	in.values = append(in.values, value)
	in.ids[value] = id
	return id
}

// A renumbering replaces the numbers of one interner by those of another, to which it adds
// the values that are used.
type renumbering struct {
	numbers []uint32 // in the other one; 0 if the value was not used yet
}

// append appends to dst the numbers in to of ids, which are those of values.
func (r *renumbering) append(dst, ids []uint32, values []string, to *interner) []uint32 {
	r.grow(len(values))
	for _, id := range ids {
		number := r.numbers[id]
		if number == 0 && id != 0 {
			number = to.idOf(values[id])
			r.numbers[id] = number
		}
		dst = append(dst, number)
	}
	return dst
}

// grow extends numbers to those of n values.
func (r *renumbering) grow(n int) {
	if more := n - len(r.numbers); more > 0 {
		r.numbers = append(r.numbers, make([]uint32, more)...)
	}
}
