package resp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
)

// scanned returns what a Scanner finds in a stream that comes in pieces: the ends of the values with what they
// are, and whether a fault, or a part of a value, follows.
func scanned(pieces []string, limits resp.Limits) string {
	s, at := resp.NewScanner(limits), 0
	var out strings.Builder
	for _, p := range pieces {
		for b := []byte(p); len(b) > 0; {
			n, whole, err := s.Scan(b)
			if err != nil {
				return out.String() + "fault"
			}
			if at += n; whole {
				v := s.Value()
				fmt.Fprintf(&out, "%d: %c%d %q\n", at, v.Kind, v.N, v.Text)
			}
			b = b[n:]
		}
	}
	if s.Within() {
		out.WriteString("part")
	}
	return out.String()
}

// A slowScanner is a slow Scanner of a stream that is all there, by regular expressions and recursion. It was written after the
// protocol specification.
type slowScanner struct {
	stream string
	limits resp.Limits
	at     int
	values int
	texts  []string
}

var (
	errFault = errors.New("fault")
	errPart  = errors.New("part")

	lines = map[byte]*regexp.Regexp{
		'+': regexp.MustCompile(`^[^\r\n]*$`),
		'-': regexp.MustCompile(`^[^\r\n]*$`),
		':': regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`),
		'$': regexp.MustCompile(`^(-1|0|[1-9][0-9]*)$`),
		'*': regexp.MustCompile(`^(-1|0|[1-9][0-9]*)$`),
		'_': regexp.MustCompile(`^$`),
		'#': regexp.MustCompile(`^[tf]$`),
		',': regexp.MustCompile(`^(-?inf|-?nan|[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)$`),
		'(': regexp.MustCompile(`^-?[0-9]+$`),
		'=': regexp.MustCompile(`^(0|[1-9][0-9]*)$`),
		'%': regexp.MustCompile(`^(0|[1-9][0-9]*)$`),
		'~': regexp.MustCompile(`^(0|[1-9][0-9]*)$`),
		'>': regexp.MustCompile(`^(0|[1-9][0-9]*)$`),
	}
)

func slowlyScanned(stream string, limits resp.Limits) string {
	var out strings.Builder
	for at := 0; at < len(stream); {
		s := slowScanner{stream: stream[at:], limits: limits}
		v, err := s.value(0)
		if err != nil {
			return out.String() + err.Error()
		}
		at += s.at
		text := strings.Join(s.texts, " ")
		fmt.Fprintf(&out, "%d: %c%d %q\n", at, v.Kind, v.N, text[:min(len(text), resp.MaxScanText)])
	}
	return out.String()
}

// value reads a value at the given depth.
func (s *slowScanner) value(depth int) (v resp.Value, err error) {
	from := s.at
	if from == len(s.stream) {
		return v, errPart
	}
	kind := s.stream[from]
	grammar, longest := lines[kind], 256
	if grammar == nil {
		return v, errFault
	}
	if kind == '+' || kind == '-' {
		longest = 64 << 10
	}
	line, rest, whole := strings.Cut(s.stream[from:], "\n")
	body, hasEnd := strings.CutSuffix(line, "\r")
	switch {
	case strings.Contains(body, "\r"), whole && !hasEnd, len(line) > longest+len("\r"):
		return v, errFault
	case !whole:
		return v, errPart
	case !grammar.MatchString(body[1:]):
		return v, errFault
	}
	s.at = len(s.stream) - len(rest)
	if s.at > s.limits.Command || kind == '>' && from > 0 {
		return v, errFault
	}
	if v.Kind = kind; strings.IndexByte("+-,(", kind) >= 0 {
		s.texts = append(s.texts, body[1:min(len(body), resp.MaxScanText)])
		if kind == ',' {
			if _, err := strconv.ParseFloat(body[1:], 64); err != nil && !strings.HasSuffix(body, "nan") {
				return v, errFault
			}
		}
		return v, nil
	}
	switch body[1:] {
	case "t":
		v.N = 1
		return v, nil
	case "", "f":
		return v, nil
	}
	n, err := strconv.ParseInt(body[1:], 10, 64)
	v.N = n
	switch {
	case err != nil:
		return v, errFault
	case kind == ':':
		return v, nil
	case n == -1:
		return resp.Value{Kind: '_'}, nil
	case kind == '$' || kind == '=':
		v.N = n
		return v, s.text(int(min(n, 1<<40)))
	case kind == '%':
		v.N = 2 * min(n, 1<<40)
	}
	if v.N > int64(s.limits.Args-1-s.values) || depth == 32 && v.N > 0 {
		return v, errFault
	}
	s.values += int(v.N)
	for range v.N {
		if _, err := s.value(depth + 1); err != nil {
			return v, err
		}
	}
	return v, nil
}

// text reads a string of n bytes.
func (s *slowScanner) text(n int) error {
	end := s.at + n
	if n > s.limits.Bulk || end > s.limits.Command {
		return errFault
	}
	if end > len(s.stream) {
		s.at = len(s.stream)
		return errPart
	}
	s.texts = append(s.texts, s.stream[s.at:end])
	switch after := s.stream[end:]; {
	case strings.HasPrefix(after, "\r\n"):
		s.at = end + 2
		return nil
	case after == "" || after == "\r":
		return errPart
	}
	return errFault
}

var scans = []string{
	"+OK\r\n:1\r\n$3\r\nabc\r\n*2\r\n$1\r\na\r\n:-5\r\n", "%1\r\n+proto\r\n:3\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*1\r\n>1\r\n+a\r\n", "$-1\r\n*-1\r\n_\r\n#t\r\n#f\r\n,1.5\r\n,-inf\r\n(12345678901234567890\r\n=5\r\ntxt:a\r\n~1\r\n*0\r\n",
	"$-5\r\n", "*2147483647\r\n", "$9223372036854775807\r\n", "%4611686018427387904\r\n", "$0\r\n\r\n", "$1\r\nab\r\n", "+a\rb\r\n", "+a\n", "$01\r\n", ":+1\r\n",
	"%-1\r\n", ">-1\r\n", "=-1\r\n", "#x\r\n", ",1..2\r\n", ",1e999\r\n", "(\r\n", "_1\r\n", "$?\r\n", "|1\r\n", "!1\r\na\r\n", "\r\n", "\x00", "$ 1\r\n", "-ERR no\r\n",
	strings.Repeat("*1\r\n", 32) + ":1\r\n", strings.Repeat("*1\r\n", 33) + ":1\r\n", "*2\r\n*2\r\n:1\r\n:2\r\n$2\r\nab\r\n", "*6\r\n", "*4\r\n*1\r\n", "%3\r\n", "$2\r\nab\r\r", "*1\r\n$3\r\na",
	":" + strings.Repeat("1", 300), "+" + strings.Repeat("a", 80), "$41\r\n", "*2\r\n$40\r\n" + strings.Repeat("a", 40) + "\r\n$40\r\n",
}

// TestScanner compares values in one piece, and cut everywhere, with the slow scanner.
func TestScanner(t *testing.T) {
	long := resp.Limits{Bulk: 1 << 20, Args: 1000, Command: 1 << 20}
	for _, n := range []int{254, 255, 256, 257, 64<<10 - 1, 64 << 10, 64<<10 + 1} {
		scans = append(scans, "+"+strings.Repeat("a", n)+"\r\n", "("+strings.Repeat("1", n)+"\r\n")
	}
	for _, stream := range scans {
		for _, limits := range []resp.Limits{small, long} {
			want := slowlyScanned(stream, limits)
			for _, pieces := range [][]string{{stream}, singles(stream)} {
				if got := scanned(pieces, limits); got != want {
					t.Errorf("%.80q in %d pieces: %.200s, want %.200s", stream, len(pieces), got, want)
				}
			}
		}
	}
}

// FuzzScanner compares values that come in cut at random with the slow scanner.
func FuzzScanner(f *testing.F) {
	for i, stream := range scans {
		f.Add(stream, uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream string, seed uint64) {
		cut := randomCut(rand.New(rand.NewPCG(seed, 0)), stream)
		for _, limits := range []resp.Limits{small, usual} {
			if got, want := scanned(cut, limits), slowlyScanned(stream, limits); got != want {
				t.Fatalf("%q: %s, want %s", cut, got, want)
			}
		}
	})
}

func TestScannerDoesNotAllocate(t *testing.T) {
	s, stream := resp.NewScanner(resp.Limits{}), []byte("*3\r\n$3\r\nabc\r\n,1.5\r\n%1\r\n+a\r\n_\r\n")
	if n := testing.AllocsPerRun(1000, func() {
		if n, whole, err := s.Scan(stream); n != len(stream) || !whole || err != nil {
			t.Fatal(n, whole, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkScanner(b *testing.B) {
	s, stream := resp.NewScanner(resp.Limits{}), []byte("$60\r\n"+strings.Repeat("a", 60)+"\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Scan(stream); err != nil {
			b.Fatal(err)
		}
	}
}
