package resp

// AppendCommand appends a command to dst, its name first, as the array of bulk
// strings that servers read, and returns the longer slice. Arguments are any
// bytes. It allocates only what does not fit into dst.
//
// Without an argument it appends an empty array, which no server answers.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	dst = AppendCommandHead(dst, len(args))
	for _, arg := range args {
		dst = appendBulk(dst, arg)
	}
	return dst
}

// AppendCommandHead begins a command of n arguments, its name included. The
// arguments follow with [AppendArg] and [AppendIntArg], in any mixture.
func AppendCommandHead(dst []byte, n int) []byte {
	return append(appendInt(append(dst, '*'), int64(max(n, 0))), '\r', '\n')
}

// AppendArg appends one argument of a command.
func AppendArg[T string | []byte](dst []byte, arg T) []byte { return appendBulk(dst, arg) }

// AppendIntArg appends one argument of a command: an integer, in decimal.
func AppendIntArg(dst []byte, n int64) []byte {
	var text [20]byte
	return appendBulk(dst, appendInt(text[:0], n))
}
