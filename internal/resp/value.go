package resp

// A Value is a reply of a server, or an element of one. See [ReplyReader.Next].
type Value struct {
	// Kind is the byte with which the value begins on the wire, and '_' for every null.
	Kind byte

	// N is the number of an integer, 1 for true, and of an aggregate the number of its
	// elements: for a map, of keys and values together.
	N int64

	// Text is what strings, errors, doubles and big numbers have. It is a view of the
	// read buffer.
	Text []byte
}

// The kinds of values.
const (
	KindSimple   = '+'
	KindError    = '-'
	KindInt      = ':'
	KindBulk     = '$'
	KindArray    = '*'
	KindNull     = '_'
	KindBool     = '#'
	KindDouble   = ','
	KindBig      = '('
	KindVerbatim = '=' // its Text begins with the format: "txt:"
	KindMap      = '%'
	KindSet      = '~'
	KindPush     = '>'
)

// isAggregate reports whether elements follow a value of this kind.
func isAggregate(kind byte) bool {
	return kind == KindArray || kind == KindMap || kind == KindSet || kind == KindPush
}
