package resp

// AppendCommand appends a command, its name first, to dst as an array of bulk strings, and
// returns the longer slice.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	dst = append(appendInt(append(dst, '*'), int64(len(args))), '\r', '\n')
	for _, arg := range args {
		dst = appendBulk(dst, arg)
	}
	return dst
}
