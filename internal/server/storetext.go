package server

import (
	"strings"
	"unicode"
)

// maxStoreText bounds the text of an error of the store.
const maxStoreText = 200

// storeText returns the text of an error of the store for the log, the status and answers. Redis, or
// what answers in its place, may send any bytes: at most maxStoreText of them are kept, and those that
// cannot be printed become question marks.
func storeText(err error) string {
	text := err.Error()
	if len(text) > maxStoreText {
		text = text[:maxStoreText] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
