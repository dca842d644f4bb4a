package match

// needsCleaning reports whether appendClean would change p: an escape, an
// empty segment, or a segment that begins with a dot.
func needsCleaning(p []byte) bool {
	for i, c := range p {
		switch c {
		case '%':
			return true
		case '/':
			if i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.') {
				return true
			}
		}
	}
	return false
}

// appendClean appends p, decoded and dot-cleaned, to dst.
func appendClean(dst, p []byte) []byte {
	base := len(dst)
	dst = appendDecoded(dst, p)
	if len(dst) == base || dst[base] != '/' {
		return dst
	}
	// Rewrite in place: w never passes r, since every step writes no more
	// than it read. dst[base:w] always ends in '/' between segments.
	w := base + 1
	for r := base + 1; r < len(dst); {
		end := r
		for end < len(dst) && dst[end] != '/' {
			end++
		}
		seg, more := dst[r:end], end < len(dst)
		switch {
		case len(seg) == 0, len(seg) == 1 && seg[0] == '.':
		case len(seg) == 2 && seg[0] == '.' && seg[1] == '.':
			if w > base+1 {
				w--
				for dst[w-1] != '/' {
					w--
				}
			}
		default:
			w += copy(dst[w:], seg)
			if more {
				dst[w] = '/'
				w++
			}
		}
		r = end + 1
	}
	return dst[:w]
}

// appendDecoded appends p with each valid %XX replaced by its byte. A '%' that
// is not followed by two hex digits stays as it is.
func appendDecoded(dst, p []byte) []byte {
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && i+2 < len(p) {
			hi, lo := unhex(p[i+1]), unhex(p[i+2])
			if hi < 16 && lo < 16 {
				dst = append(dst, hi<<4|lo)
				i += 2
				continue
			}
		}
		dst = append(dst, p[i])
	}
	return dst
}

// unhex returns the value of a hex digit, or 255.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
