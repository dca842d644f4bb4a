package replay

// interner numbers the distinct values of one field, from 1; 0 is no value.
type interner struct {
	ids    map[string]uint32
	values []string // values[id-1]
}

func newInterner() *interner { return &interner{ids: make(map[string]uint32)} }

func (in *interner) id(value []byte) uint32 {
	if id, ok := in.ids[string(value)]; ok {
		return id
	}
	return in.add(string(value))
}

func (in *interner) add(value string) uint32 {
	in.values = append(in.values, value)
	id := uint32(len(in.values))
	in.ids[value] = id
	return id
}

// A renumbering replaces the numbers of one interner by those of another, to which it adds
// the values that are used.
type renumbering struct {
	from, to *interner
	numbers  []uint32 // in to, of those in from; 0 if the value was not used yet
}

// append appends to dst the numbers of ids.
func (r *renumbering) append(dst, ids []uint32) []uint32 {
	for _, id := range ids {
		to := r.numbers[id]
		if to == 0 && id != 0 {
			to = r.add(id)
		}
		dst = append(dst, to)
	}
	return dst
}

func (r *renumbering) add(id uint32) uint32 {
	value := r.from.values[id-1]
	to, ok := r.to.ids[value]
	if !ok {
		to = r.to.add(value)
	}
	r.numbers[id] = to
	return to
}

// texts returns the value of each number; number 0 has none.
func (in *interner) texts() []string { return append([]string{""}, in.values...) }
