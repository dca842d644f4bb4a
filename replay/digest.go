package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// judged returns the decisions without the events that were not judged.
func judged(decisions []byte) []byte {
	out := make([]byte, 0, len(decisions))
	for _, d := range decisions {
		if d != 0 {
			out = append(out, d)
		}
	}
	return out
}

// digest returns the SHA-256 of decisions, in hex.
func digest(decisions []byte) string {
	sum := sha256.Sum256(decisions)
	return hex.EncodeToString(sum[:])
}

// digestMoments returns the SHA-256 of "<t>\t<key>\n" for each moment, in hex.
// t is epoch seconds; the key is UTF-8, where keys that are bytes are read as
// Latin-1.
func (r *run) digestMoments(moments func(yield func(tick int64, key string) bool)) string {
	h := sha256.New()
	text := r.textKeys()
	var line []byte
	for tick, key := range moments {
		line = append(r.clock.appendEpoch(line[:0], tick), '\t')
		if text {
			line = append(line, key...)
		} else {
			for i := range len(key) {
				line = utf8.AppendRune(line, rune(key[i]))
			}
		}
		h.Write(append(line, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}
