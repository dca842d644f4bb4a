package replay

// interner numbers the distinct values of one field, from 1; 0 is no value.
type interner struct {
	ids    map[string]uint32
	values []string // by number; number 0 has none
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

// idOf is id without a copy of the value.
func (in *interner) idOf(value string) uint32 {
	if id, ok := in.ids[value]; ok {
		return id
	}
	return in.add(value)
}

func (in *interner) add(value string) uint32 {
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
	if n := len(values) - len(r.numbers); n > 0 {
		r.numbers = append(r.numbers, make([]uint32, n)...)
	}
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
