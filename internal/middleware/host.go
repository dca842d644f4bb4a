package middleware

import "strings"

// AppendHost appends host in lower case, without port and final dots: a client can
// write it in any of these ways and gets the same answer.
func AppendHost(dst []byte, host string) []byte {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	for _, c := range []byte(strings.TrimRight(host, ".")) {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}
