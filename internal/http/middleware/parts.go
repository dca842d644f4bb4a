package middleware

import (
	"strings"

	"github.com/lately-go/lately/internal/event/intake"
)

// Single returns the common value of values, or [intake.Ambiguous] if they differ: some
// servers use the first header of a name, others the last or all.
func Single(values []string) string {
	if len(values) == 0 {
		return ""
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return intake.Ambiguous
		}
	}
	return values[0]
}

// both returns the value that a and b are if each of them may be absent, or [intake.Ambiguous].
func both(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return intake.Ambiguous
}

// Cookie returns the value of the cookie of that name in lines, which are the values of the
// header Cookie. Values that net/http ignores are ignored.
func Cookie(lines []string, name string) (value string) {
	for _, line := range lines {
		for line != "" {
			var part string
			part, line, _ = strings.Cut(line, ";")
			key, v, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if strings.Trim(key, " \t") != name {
				continue
			}
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			if isCookieValue(v) {
				value = both(value, v)
			}
		}
	}
	return value
}

func isCookieValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f || r == '"' || r == ';' || r == '\\' })
}

// Bearer returns the token in lines, which are the values of the header Authorization. It is
// [intake.Ambiguous] if there are several lines, or if there is a space in the token.
func Bearer(lines []string) (token string) {
	const scheme = "Bearer"
	for _, line := range lines {
		line = strings.Trim(line, " \t")
		if len(line) <= len(scheme) || !strings.EqualFold(line[:len(scheme)], scheme) || line[len(scheme)] != ' ' && line[len(scheme)] != '\t' {
			continue
		}
		if token = strings.Trim(line[len(scheme):], " \t"); len(lines) > 1 || strings.ContainsAny(token, " \t") {
			return intake.Ambiguous
		}
	}
	return token
}

// Parameter returns the value of the parameter of that name in a query, decoded. A value that
// cannot be decoded is returned as it was sent. It allocates to decode a value.
func Parameter(query, name string) (value string) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, v, _ := strings.Cut(pair, "=")
		if intake.DecodeQuery(key) == name {
			value = both(value, intake.DecodeQuery(v))
		}
	}
	return value
}
