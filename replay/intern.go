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

// merge adds the values of o and returns the number here of each number there.
func (in *interner) merge(o *interner) []uint32 {
	renumber := make([]uint32, len(o.values)+1)
	for i, v := range o.values {
		id, ok := in.ids[v]
		if !ok {
			id = in.add(v)
		}
		renumber[i+1] = id
	}
	return renumber
}

// texts returns the value of each number; number 0 has none.
func (in *interner) texts() []string { return append([]string{""}, in.values...) }
