package accesslog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// isValid reads one value of any kind.
func isValid(line string) bool {
	s := &jsonReader{line: []byte(line)}
	_, end := s.value(s.blank(0), 0)
	return end >= 0 && s.blank(end) == len(line)
}

func checkValid(t *testing.T, line string) {
	t.Helper()
	if want := utf8.ValidString(line) && json.Valid([]byte(line)); isValid(line) != want {
		t.Fatalf("valid = %v, want %v: %q", !want, want, line)
	}
}

// jsonPieces make lines that are good JSON now and then.
var jsonPieces = []string{
	`{`, `}`, `[`, `]`, `,`, `:`, ` `, "\t", `"a"`, `"a":`, `"`, `\`, `"\u00e4"`, `"\ud83d\ude00"`, `"\ud83d"`, `"ä€😀"`, "\xff", "\xc3",
	`"\n"`, `"\x"`, `"\u12g4"`, "\"\x1f\"", `0`, `-0`, `01`, `1.5`, `1.`, `.5`, `-`, `1e5`, `1E-7`, `1e`, `123456789012345678901`, `+1`,
	`true`, `false`, `null`, `tru`, `nulll`, `{}`, `[]`, `{"a":1}`, `[1,2]`, `"0123456789abcdef"`, `"0123456\"789"`, "\"\x7f\"", "\u2028", "\ufeff",
}

func TestJSONScanAgreesWithEncodingJSON(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	good := 0
	for range 50_000 {
		line := randomJSON(rng, 4)
		checkValid(t, line)
		if isValid(line) {
			good++
		}
		i := rng.IntN(len(line) + 1)
		j := min(len(line), i+rng.IntN(3))
		checkValid(t, line[:i]+jsonPieces[rng.IntN(len(jsonPieces))]+line[j:])
		checkValid(t, line[:i])
	}
	if good < 10_000 {
		t.Errorf("only %d good lines", good)
	}
}

// randomJSON returns a value that is good as a rule.
func randomJSON(rng *rand.Rand, depth int) string {
	blank := func() string { return strings.Repeat(" ", max(0, rng.IntN(5)-3)) }
	if depth == 0 || rng.IntN(3) == 0 {
		return blank() + jsonPieces[8+rng.IntN(len(jsonPieces)-8)] + blank()
	}
	var parts []string
	object := rng.IntN(2) == 0
	for range rng.IntN(4) {
		part := randomJSON(rng, depth-1)
		if object {
			part = fmt.Sprintf(`%s"k%d"%s:%s`, blank(), rng.IntN(3), blank(), part)
		}
		parts = append(parts, part)
	}
	if object {
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func TestJSONScanDepth(t *testing.T) {
	for _, depth := range []int{1, 63, 64, 65, maxDepth - 1, maxDepth, maxDepth + 1, 30_000} {
		mixed := strings.Repeat(`[{"a":`, depth/2) + strings.Repeat(`[`, depth%2) + `1` + strings.Repeat(`]`, depth%2) + strings.Repeat(`}]`, depth/2)
		for _, line := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
			mixed,
			strings.Replace(mixed, "}]", "]}", 1),
		} {
			checkValid(t, line)
		}
	}
}

// NaN and Infinity, which Python writes, are not JSON.
func TestJSONScanRejectsNaN(t *testing.T) {
	for _, tt := range []struct {
		line string
		want bool
	}{
		{"NaN", false},
		{"Infinity", false},
		{"-Infinity", false},
		{"[NaN, -Infinity]", false},
		{"-", false},
		{"nan", false},
		{"-NaN", false},
		{"-Inf", false},
		{"Infinit", false},
		{"--Infinity", false},
	} {
		if got := isValid(tt.line); got != tt.want {
			t.Errorf("%.20s... is valid: %v, want %v", tt.line, got, tt.want)
		}
	}
}

func TestAppendUnescaped(t *testing.T) {
	for code := range 0x10000 {
		for _, raw := range []string{
			fmt.Sprintf(`\u%04x`, code),
			fmt.Sprintf(`a\u%04X\ude00b`, code),
			fmt.Sprintf(`\ud83d\u%04x`, code),
		} {
			checkUnescaped(t, raw)
		}
	}
	for _, raw := range []string{``, `\"\\\/\b\f\n\r\t`, `\ud83d\\ude00`, `ä\u00e4`, `\ud83d\n`, `\ud83d\ud83d\ude00`, `\ude00\ud83d`} {
		checkUnescaped(t, raw)
	}
}

func checkUnescaped(t *testing.T, raw string) {
	t.Helper()
	var want string
	must.Do(t, json.Unmarshal([]byte(`"`+raw+`"`), &want))
	if got := ReplaceSurrogates(string(appendUnescaped(nil, []byte(raw)))); got != want {
		t.Fatalf("%s is %q, want %q", raw, got, want)
	}
}

// ReplaceSurrogates does what encoding/json does: half of a pair becomes U+FFFD.
func ReplaceSurrogates(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 {
			b.WriteString("\ufffd")
			s = s[3:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// TestLoneSurrogatesAreDifferent has strings with half of a pair: all are different keys, and differ from any valid text.
func TestLoneSurrogatesAreDifferent(t *testing.T) {
	seen := make(map[string]int)
	for code := 0xd800; code < 0xe000; code++ {
		key := string(appendUnescaped(nil, fmt.Appendf(nil, `a\u%04x`, code)))
		if before, twice := seen[key]; twice || utf8.ValidString(key) {
			t.Fatalf("%04x is %q, as is %04x", code, key, before)
		}
		seen[key] = code
	}
}

func FuzzJSONScan(f *testing.F) {
	f.Add(`{"a":[1,-2.5e+3,"\u00e4\ud83d\ude00",{"b":null}],"c":true}`)
	f.Add(`[[[{"a":{}}]]]`)
	f.Fuzz(func(t *testing.T, line string) {
		checkValid(t, line)
	})
}
