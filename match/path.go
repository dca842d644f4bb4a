package match

import (
	"bytes"
	"encoding/hex"
	"slices"
)

// Servers do not agree on the path of a request target: "/x\..\login" is /login for
// one and an odd name for another. The path of an event is therefore read in up to
// four ways, and a condition on path holds if it holds for one of them. Otherwise a
// client could choose a spelling that the server behind a limit reads as /login and
// the limit does not.
//
//	nginx     the part before '?' or '#'; %XX is decoded once; runs of '/' are
//	          merged; "." and ".." are resolved. This is [Event.CleanPath].
//	Go        the same, but '#' is an ordinary byte.
//	WHATWG    as new URL(target, base) in JavaScript and browsers: '\' is '/';
//	          what follows a leading "//" up to the next '/' is a host; "." and
//	          ".." are resolved before decoding, and empty segments are segments.
//	as sent   as routers that resolve nothing: '\' is '/', and ".." is a name.
//
// The last two keep %2F, which does not end a segment there. Nearly all paths are the
// same in all four ways, and are read once.

// A pathForm is how a path must be read.
type pathForm uint8

const (
	pathUnread    pathForm = iota
	pathPlain              // clean already
	pathCoded              // to be cut or decoded, with the same result for all
	pathAmbiguous          // servers may differ
	pathRead               // ambiguous, and the other readings are known
)

// isPathMark has the bytes that make a path other than plain.
var isPathMark = [256]bool{'%': true, '/': true, '?': true, '#': true, '\\': true}

// formOf returns the form of p. It may take a path for ambiguous that is not, never
// the reverse.
func formOf(p []byte) pathForm {
	if len(p) > 0 && p[0] != '/' {
		return pathAmbiguous
	}
	form := pathPlain
	for i, c := range p {
		if !isPathMark[c] {
			continue
		}
		switch {
		case c == '/':
			if i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.') {
				return pathAmbiguous
			}
		case c == '?':
			return pathCoded
		case c == '%' && !isDotOrSlash(p, i):
			form = pathCoded
		default:
			return pathAmbiguous
		}
	}
	return form
}

// isDotOrSlash reports whether p has "%2e" or "%2f" at i.
func isDotOrSlash(p []byte, i int) bool {
	c, _ := decodeAt(p, i)
	return c == '.' || c == '/'
}

// appendClean appends p to dst as nginx reads it.
func appendClean(dst, p []byte) []byte { return appendResolved(dst, cutTarget(p, "?#")) }

// appendResolved appends p decoded, with dot segments resolved and empty ones removed.
func appendResolved(dst, p []byte) []byte {
	base := len(dst)
	return resolveDots(decode(append(dst, p...), base, false), base, true)
}

// appendWHATWG appends p to dst as the URL standard of the WHATWG reads it.
func appendWHATWG(dst, p []byte) []byte {
	base := len(dst)
	if len(p) > 1 && isSlash(p[0]) && isSlash(p[1]) {
		p = afterAuthority(bytes.TrimLeft(cut(p, "?#"), `/\`))
	}
	dst = appendSlashed(dst, cutTarget(p, "?#"))
	dst = resolveDots(dst, base, false)
	return decode(dst, base, true)
}

// appendAsSent appends p to dst without resolving "." and "..".
func appendAsSent(dst, p []byte) []byte {
	base := len(dst)
	return decode(appendSlashed(dst, cutTarget(p, "?#")), base, true)
}

// cutTarget returns the path of a request target: the part before the first of
// the bytes in ends, without scheme and authority ("http://host/path"), or "/"
// if that is empty.
func cutTarget(p []byte, ends string) []byte {
	if p = cut(p, ends); len(p) == 0 {
		return []byte{'/'}
	}
	if isSlash(p[0]) {
		return p
	}
	scheme, rest, ok := bytes.Cut(p, []byte("://"))
	if !ok || len(scheme) == 0 || bytes.ContainsAny(scheme, `/\`) {
		return p // "*", "host:443"
	}
	return afterAuthority(rest)
}

// cut returns the part before the first of the bytes in ends.
func cut(p []byte, ends string) []byte {
	if end := bytes.IndexAny(p, ends); end >= 0 {
		return p[:end]
	}
	return p
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// afterAuthority returns the path behind an authority, which is never empty.
func afterAuthority(p []byte) []byte {
	if slash := bytes.IndexAny(p, `/\`); slash >= 0 {
		return p[slash:]
	}
	return []byte{'/'}
}

// appendSlashed appends p with '/' for each '\'.
func appendSlashed(dst, p []byte) []byte {
	for _, c := range p {
		if isSlash(c) {
			c = '/'
		}
		dst = append(dst, c)
	}
	return dst
}

// resolveDots resolves the "." and ".." segments of dst[base:], in place and
// never above the root. Text that does not begin with '/' is not changed. If merge is
// set, empty segments are removed; otherwise they are segments, and dots may be
// written as %2e.
func resolveDots(dst []byte, base int, merge bool) []byte {
	if len(dst) == base || dst[base] != '/' {
		return dst
	}
	// w never passes r, since every step writes no more than it read.
	// dst[base:w] always ends in '/' between segments.
	w := base + 1
	for r := base + 1; r < len(dst); {
		end := r
		for end < len(dst) && dst[end] != '/' {
			end++
		}
		seg, more := dst[r:end], end < len(dst)
		switch dots := dotsOf(seg, !merge); {
		case dots == 1, merge && len(seg) == 0:
		case dots == 2:
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

// dotsOf returns 1 for ".", 2 for "..", and 0 for any other segment; if coded is
// set, a dot may be written as %2e.
func dotsOf(seg []byte, coded bool) int {
	for n := 0; ; n++ {
		switch {
		case len(seg) == 0:
			return n
		case n == 2:
			return 0
		case seg[0] == '.':
			seg = seg[1:]
		case coded && len(seg) >= 3 && seg[0] == '%' && seg[1] == '2' && seg[2]|0x20 == 'e':
			seg = seg[3:]
		default:
			return 0
		}
	}
}

// decode replaces each valid %XX in dst[base:] by its byte, in place, except %2F if
// keepSlashes is set. A '%' that is not followed by two hex digits is not changed.
func decode(dst []byte, base int, keepSlashes bool) []byte {
	p := dst[base:]
	dst = dst[:base]
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == '%' {
			if x, ok := decodeAt(p, i); ok && (x != '/' || !keepSlashes) {
				c = x
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// decodeAt returns the byte that the %XX at p[i] encodes.
func decodeAt(p []byte, i int) (c byte, ok bool) {
	if i+2 >= len(p) {
		return 0, false
	}
	var b [1]byte
	_, err := hex.Decode(b[:], p[i+1:i+3])
	return b[0], err == nil
}

// pathReadings are the ways in which the path of an event is read.
type pathReadings struct {
	form   pathForm
	clean  []byte    // as nginx reads it; known unless form is pathUnread
	others [3][]byte // the other readings, those that differ from clean
	n      int
	memory []byte // owned; the readings point into it
}

// read makes r.clean the path p as nginx reads it.
func (r *pathReadings) read(p []byte) {
	r.clean, r.form = p, formOf(p)
	switch r.form {
	case pathPlain:
		return
	case pathCoded: // nothing to resolve
		r.memory = decode(append(r.memory[:0], cut(p, "?")...), 0, false)
	default:
		r.memory = appendClean(r.memory[:0], p)
	}
	r.clean = r.memory
}

// readOthers sets the other readings. r.clean must be set, and p ambiguous.
func (r *pathReadings) readOthers(p []byte) {
	r.form, r.n = pathRead, 0
	n := len(r.clean)
	r.memory = slices.Grow(r.memory, 3*len(p)+3) // so that it does not move
	r.clean = r.memory[:n]
	if bytes.IndexByte(p, '#') >= 0 {
		r.keep(appendResolved(r.memory, cutTarget(p, "?"))) // as Go reads it
	}
	r.keep(appendWHATWG(r.memory, p))
	r.keep(appendAsSent(r.memory, p))
}

// keep adds what grown has after r.memory to the readings, unless it equals r.clean.
func (r *pathReadings) keep(grown []byte) {
	other := grown[len(r.memory):]
	if bytes.Equal(other, r.clean) {
		return
	}
	r.memory = grown
	r.others[r.n] = other
	r.n++
}
