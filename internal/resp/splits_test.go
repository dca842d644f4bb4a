package resp_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/randtest"
)

// longForm reports whether the long form of the random tests is wanted:
//
//	LATELY_LONG=1 go test ./internal/resp -timeout 1h
func longForm() bool { return os.Getenv("LATELY_LONG") != "" }

// seeded returns a source of random numbers and its seed.
func seeded(t *testing.T) (*rand.Rand, uint64) {
	seed := randtest.Seed(t)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// chunks is a source that gives each of its strings in a Read of its own.
type chunks []string

func (c *chunks) Read(p []byte) (int, error) {
	for len(*c) > 0 && (*c)[0] == "" {
		*c = (*c)[1:]
	}
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	(*c)[0] = (*c)[0][n:]
	return n, nil
}

// singles cuts a stream into bytes.
func singles(stream string) []string {
	cut := make([]string, len(stream))
	for i := range cut {
		cut[i] = stream[i : i+1]
	}
	return cut
}

// small are limits that short streams reach, and a buffer that has to move and
// grow all the time.
var small = resp.Limits{Bulk: 40, Args: 5, Inline: 48, Command: 96, Buffer: 16}

// usual are the defaults, spelled out.
var usual = resp.Limits{Bulk: 64 << 10, Args: 1024, Inline: 64 << 10, Command: 1 << 20, Buffer: 4096}

// A parser reads a stream that comes in cut, to its end.
type parser func(cut []string, limits resp.Limits) outcome

func read(cut []string, limits resp.Limits) outcome {
	return drain(resp.NewReader(new(chunks(slices.Clone(cut))), limits), false)
}

// readReady is read for a server that checks whether more is buffered.
func readReady(cut []string, limits resp.Limits) outcome {
	return drain(resp.NewReader(new(chunks(slices.Clone(cut))), limits), true)
}

func drain(r *resp.Reader, ask bool) (o outcome) {
	for {
		args, err := r.Next()
		if err != nil {
			o.end = err.Error()
			return o
		}
		command := make([]string, len(args))
		for i, arg := range args {
			command[i] = string(arg)
		}
		o.commands = append(o.commands, command)
		if ask {
			r.Ready()
		}
	}
}

// checkSplits compares the results of parse for a stream with the reference:
// whole, cut in two at each byte, and in single bytes.
func checkSplits(parse parser, stream string, limits resp.Limits) error {
	want := reference(stream, limits)
	check := func(what string, cut []string) error {
		if got := parse(cut, limits); !got.equal(want) {
			return fmt.Errorf("%q %s:\ngot  %v\nwant %v", stream, what, got, want)
		}
		return nil
	}
	if err := check("in single bytes", singles(stream)); err != nil {
		return err
	}
	for i := range len(stream) + 1 {
		if err := check(fmt.Sprintf("cut at %d", i), []string{stream[:i], stream[i:]}); err != nil {
			return err
		}
	}
	return nil
}

// streams is the corpus: what servers meet, and what they should never meet.
var streams = []string{
	"",
	"\r\n",
	"\n\n  \r\n\t\n",
	"PING\r\n",
	"PING\n",
	"PING",
	"*1\r\n$4\r\nPING\r\n",
	"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n",
	"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
	"*2\r\n$4\r\nECHO\r\n$6\r\na\r\nb\r\n\r\n",
	"*2\r\n$4\r\nECHO\r\n$10\r\n0123456789\r\n*1\r\n$4\r\nPING\r\n",
	"*1\r\n$4\r\nPING\r\nPING\r\n*0\r\n*-1\r\n\r\n*1\r\n$1\r\nx\r\n",
	"*5\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n",
	"*6\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n",
	"a b c d e\r\n",
	"a b c d e f\r\n",
	"*1\r\n$40\r\n" + strings.Repeat("x", 40) + "\r\n",
	"*1\r\n$41\r\n" + strings.Repeat("x", 41) + "\r\n",
	"*3\r\n$30\r\n" + strings.Repeat("x", 30) + "\r\n$30\r\n" + strings.Repeat("y", 30) + "\r\n$6\r\n123456\r\n",
	"*3\r\n$30\r\n" + strings.Repeat("x", 30) + "\r\n$30\r\n" + strings.Repeat("y", 30) + "\r\n$7\r\n1234567\r\n",
	"*3\r\n$30\r\n" + strings.Repeat("x", 30) + "\r\n$30\r\n" + strings.Repeat("y", 30) + "\r\n$11\r\n12345678901\r\n",
	strings.Repeat("z", 40) + "\r\n",
	strings.Repeat("z", 41) + "\r\n",
	strings.Repeat(" ", 48) + "\r\nPING\r\n",
	strings.Repeat(" ", 49) + "\r\nPING\r\n",
	strings.Repeat(" ", 48) + "\n",
	strings.Repeat(" ", 49) + "\n",
	strings.Repeat(" ", 60),
	"*1\r\n*1\r\n$4\r\nPING\r\n",
	"*1\r\n:4\r\n",
	"*1\r\n+OK\r\n",
	"*1\r\n\x1b4\r\n",
	"*1\r\n$-1\r\n",
	"*1\r\n$-2\r\n",
	"*-2\r\n",
	"*-0\r\n",
	"*+1\r\n$4\r\nPING\r\n",
	"*01\r\n$4\r\nPING\r\n",
	"*1 \r\n",
	"* 1\r\n",
	"*\r\n",
	"*1\n$4\nPING\n",
	"*1\rx",
	"*1\r\n$4\rx",
	"*1\r\n$04\r\nPING\r\n",
	"*1\r\n$4x\r\nPING\r\n",
	"*1\r\n$\r\n",
	"*1\r\n$4\r\nPINGS\r\n",
	"*1\r\n$4\r\nPING\r\r\n",
	"*1\r\n$4\r\nPING\n\r\n",
	"*2147483648\r\n",
	"*9223372036854775807\r\n",
	"*99999999999999999999999999999\r\n",
	"*1\r\n$536870913\r\n",
	"*1\r\n$2147483647\r\n",
	"*1\r\n$4294967297\r\nx\r\n",
	"*1\r\n$9223372036854775807\r\n",
	"*1\r\n$99999999999999999999999999999\r\n",
	"SET key \"a b\"\r\n",
	`x "\x41\x4g\x4G\n\r\t\b\a\q\\\"" 'it\'s \n' "" ''` + "\r\n",
	"x a\"b c\" d'e f'\r\n",
	"x \"a\"b\r\n",
	"x 'a'b\r\n",
	"x \"a\r\n",
	"x 'a\\'\r\n",
	"x \"a\\\r\n",
	"x a\\ b \\\" c\"\r\n",
	"x a\vb \vc \f d\r\r\n",
	"x \"a\"\vb\r\n",
	"x\x00y\r\n",
	"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET / HTTP/1.1\r\nHOST: localhost\r\n\r\nPING\r\n",
	"\xff\xfe\r\n",
	"$4\r\nPING\r\n",
}

func TestEverySplitGivesTheSameCommands(t *testing.T) {
	for _, stream := range streams {
		for _, limits := range []resp.Limits{small, usual} {
			for _, parse := range []parser{read, readReady} {
				if err := checkSplits(parse, stream, limits); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestSplitCheckDetectsLossyReader: the check above fails for a reader that begins again with each read, which works on
// streams that are not cut, and for one that accepts incomplete commands.
func TestSplitCheckDetectsLossyReader(t *testing.T) {
	forgetful := func(cut []string, limits resp.Limits) (all outcome) {
		all.end = io.EOF.Error()
		for _, piece := range cut {
			o := read([]string{piece}, limits)
			all.commands = append(all.commands, o.commands...)
			if o.end != io.EOF.Error() {
				all.end = o.end
				break
			}
		}
		return all
	}
	stream := "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"
	if got, want := forgetful([]string{stream}, usual), reference(stream, usual); !got.equal(want) {
		t.Errorf("not cut: got %v, want %v", got, want)
	}
	if checkSplits(forgetful, stream, usual) == nil {
		t.Error("a reader that forgets passes the check of splits")
	}
	hasty := func(cut []string, limits resp.Limits) outcome {
		o := read(cut, limits)
		if o.end == io.ErrUnexpectedEOF.Error() {
			o.end = io.EOF.Error()
		}
		return o
	}
	if checkSplits(hasty, "PING", usual) == nil {
		t.Error("a reader that takes half a command for the end passes the check of splits")
	}
}

// randomStream returns a pipeline of commands; one in a few is spoilt.
func randomStream(rng *rand.Rand) string {
	var b []byte
	for range 1 + rng.IntN(6) {
		b = append(b, randomCommand(rng)...)
	}
	return spoilt(rng, b)
}

// spoilt returns b with some bytes changed, added, taken out or cut off, often
// none.
func spoilt(rng *rand.Rand, b []byte) string {
	const spoilers = "*$:+-,#%>|0123456789\r\n\r\n \"'\\x\x00\xff"
	for range max(0, rng.IntN(6)-2) {
		if len(b) == 0 {
			break
		}
		i, c := rng.IntN(len(b)), spoilers[rng.IntN(len(spoilers))]
		switch rng.IntN(3) {
		case 0:
			b[i] = c
		case 1:
			b = slices.Insert(b, i, c)
		default:
			b = slices.Delete(b, i, i+1)
		}
	}
	if rng.IntN(4) == 0 {
		b = b[:rng.IntN(len(b)+1)]
	}
	return string(b)
}

func randomCommand(rng *rand.Rand) []byte {
	args := make([][]byte, rng.IntN(6))
	for i := range args {
		args[i] = randomBytes(rng, rng.IntN(30))
	}
	switch rng.IntN(4) {
	case 0:
		return append(randomLine(rng, rng.IntN(40)), "\r\n"...)
	case 1:
		return []byte(fmt.Sprintf("PING %d\n", rng.Int()))
	default:
		return resp.AppendCommand(nil, args...)
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// randomLine is made of what inline commands give a meaning to.
func randomLine(rng *rand.Rand, n int) []byte {
	const alphabet = `abcx4F "'\\nrt` + "\t\v\f\r  "
	b := []byte("c ")
	for range n {
		b = append(b, alphabet[rng.IntN(len(alphabet))])
	}
	return b
}

// randomCut cuts a stream into pieces of random length.
func randomCut(rng *rand.Rand, stream string) (cut []string) {
	for stream != "" {
		n := 1 + rng.IntN(min(len(stream), 1+rng.IntN(64)))
		cut, stream = append(cut, stream[:n]), stream[n:]
	}
	return cut
}

func TestRandomPipelinesAgainstTheReference(t *testing.T) {
	rng, seed := seeded(t)
	rounds := 40_000
	if longForm() {
		rounds = 10_000_000
	}
	faults := map[string]int{}
	for round := range rounds {
		stream, limits := randomStream(rng), usual
		if rng.IntN(2) == 0 { // pipelines have few quotes
			stream = string(randomLine(rng, rng.IntN(30))) + "\n"
		}
		if rng.IntN(2) == 0 {
			limits = small
		}
		cut := randomCut(rng, stream)
		want := reference(stream, limits)
		faults[want.end]++
		for _, parse := range []parser{read, readReady} {
			if got := parse(cut, limits); !got.equal(want) {
				t.Fatalf("seed %d, round %d: %q:\ngot  %v\nwant %v", seed, round, cut, got, want)
			}
		}
	}
	// The pipelines are worth something only if they meet each kind of end.
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, fault("invalid bulk length"), fault("invalid multibulk length"),
		fault("expected CR LF behind an argument"), fault("unbalanced quotes in request"),
		fault("too big command"), fault("too many arguments in inline request"),
	} {
		if faults[end.Error()] == 0 {
			t.Errorf("seed %d: no pipeline ended with %q", seed, end)
		}
	}
}

// stumbling is a source that fails with a passing error between its reads.
type stumbling struct {
	chunks
	failed bool
}

var errPassing = errors.New("passing")

func (s *stumbling) Read(p []byte) (int, error) {
	if s.failed = !s.failed; s.failed {
		return 0, errPassing
	}
	return s.chunks.Read(p)
}

func TestContinuesAfterTemporaryError(t *testing.T) {
	for _, stream := range streams {
		r := resp.NewReader(&stumbling{chunks: singles(stream)}, small)
		var got outcome
		for passed := 0; ; {
			o := drain(r, false)
			got.commands = append(got.commands, o.commands...)
			if got.end = o.end; o.end != errPassing.Error() {
				break
			}
			if passed++; passed > len(stream)+1 {
				t.Fatalf("%q: no end after %d passing errors", stream, passed)
			}
		}
		if want := reference(stream, small); !got.equal(want) {
			t.Errorf("%q:\ngot  %v\nwant %v", stream, got, want)
		}
	}
}
