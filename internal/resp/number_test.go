package resp_test

import (
	"strconv"
	"testing"

	"github.com/lately-go/lately/internal/resp"
)

// canonical is ParseInt by another way: a number equals its own formatting.
func canonical(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, false
	}
	return n, true
}

func TestParseInt(t *testing.T) {
	texts := []string{
		"", "-", "+", "0", "-0", "+0", "00", "1", "+1", "-1", "01", "-01", "1 ", " 1", "1\n", "1.0", "1e3", "0x1", "1_000",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "18446744073709551616", "99999999999999999999", "-99999999999999999999",
		"9999999999999999999", "-9999999999999999999", "100000000000000000000000000000000000000",
		"--1", "1-", "\x00", "/", ":", "1:", "1/", "٣",
	}
	rng, seed := seeded(t)
	for range 50_000 {
		texts = append(texts, strconv.FormatInt(int64(rng.Uint64())>>rng.IntN(64), 10))
		odd := []byte(texts[len(texts)-1])
		odd[rng.IntN(len(odd))] = "+-0123456789 x"[rng.IntN(14)]
		texts = append(texts, string(odd))
	}
	for _, text := range texts {
		got, ok := resp.ParseInt([]byte(text))
		want, wantOK := canonical(text)
		if ok != wantOK || ok && got != want {
			t.Fatalf("seed %d: %q: got %d, %t, want %d, %t", seed, text, got, ok, want, wantOK)
		}
	}
}
