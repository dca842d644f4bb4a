package resp

// AppendCommand appends a command to dst, its name first, as the array of bulk
// strings that servers read, and returns the longer slice. Arguments are any
// bytes. It allocates only what does not fit into dst.
//
// Without an argument it appends an empty array, which no server answers.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	dst = append(appendInt(append(dst, '*'), int64(len(args))), '\r', '\n')
	for _, arg := range args {
		dst = appendBulk(dst, arg)
	}
	return dst
}
