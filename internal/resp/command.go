package resp

// AppendCommand appends a command, its name first, to dst as an array of bulk strings, and
// returns the longer slice.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	dst = AppendArray(dst, len(args))
	for _, arg := range args {
		dst = appendBulk(dst, arg)
	}
	return dst
}

// AppendArray appends the head of an array of n elements, for a command whose arguments
// follow by [AppendBulk].
func AppendArray(dst []byte, n int) []byte {
	return append(appendInt(append(dst, '*'), int64(n)), '\r', '\n')
}

// AppendBulk appends an argument of a command.
func AppendBulk[T string | []byte](dst []byte, arg T) []byte { return appendBulk(dst, arg) }

// AppendBulkInt appends an integer as an argument of a command.
func AppendBulkInt(dst []byte, n int64) []byte {
	var text [20]byte
	return appendBulk(dst, appendInt(text[:0], n))
}
