package replay

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

const tooLongMark = "(too long)"

// cutLines returns the lines of src as the lineChunker gives them, with a mark for
// each that is longer than allowed.
func cutLines(t testing.TB, src io.Reader, bufSize int) []string {
	t.Helper()
	c := lineChunker{src: src}
	var lines []string
	for {
		data, tooLong := c.next(make([]byte, bufSize))
		if len(data) == 0 && !tooLong {
			break
		}
		if tooLong && len(data) > 0 && data[len(data)-1] != '\n' {
			t.Fatal("a block ends within a line, and another line comes after it")
		}
		for rest := data; len(rest) > 0; {
			var line []byte
			line, rest, _ = accesslog.CutLine(rest)
			lines = append(lines, marked(line))
		}
		if tooLong {
			lines = append(lines, tooLongMark)
		}
	}
	must.Do(t, c.failure())
	return lines
}

// splitLines is what cutLines must return.
func splitLines(data []byte) []string {
	var lines []string
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		lines = append(lines, marked(bytes.TrimSuffix(line, []byte("\r"))))
	}
	return lines
}

func marked(line []byte) string {
	if len(line) > accesslog.MaxLine {
		return tooLongMark
	}
	return string(line)
}

func checkCut(t testing.TB, data []byte, src io.Reader, bufSize int) {
	t.Helper()
	got, want := cutLines(t, src, bufSize), splitLines(data)
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("line %d is %.60q (%d bytes), want %.60q (%d bytes)", i, got[i], len(got[i]), want[i], len(want[i]))
		}
	}
	t.Fatalf("%d lines, want %d", len(got), len(want))
}

// smallBlock is a little more than the longest line, so that nearly every line
// crosses the end of a block.
const smallBlock = accesslog.MaxLine + 100

// TestLineChunkerAtEveryOffset has a short line begin at each offset before the end
// of a block, and the longest line, and one a byte longer, end at each.
func TestLineChunkerAtEveryOffset(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		tail := "the line" + end + end + "last"
		for offset := range 20 {
			pad := strings.Repeat("x", smallBlock-offset-60_000-1) + "\n" + strings.Repeat("y", 60_000-1) + "\n"
			data := []byte(pad[1:] + tail)
			checkCut(t, data, bytes.NewReader(data), smallBlock)
		}
		for more := range 2 {
			long := strings.Repeat("x", accesslog.MaxLine+more) + end
			for before := 80; before < 110; before++ {
				text := strings.Repeat("b", before-1) + "\n" + long + "last"
				checkCut(t, []byte(text), strings.NewReader(text), smallBlock)
			}
		}
	}
}

// TestLineChunkerLongestLine has lines of exactly the longest length and of a byte or much more, with both line ends, at
// the start, in the middle and at the end.
func TestLineChunkerLongestLine(t *testing.T) {
	for _, bufSize := range []int{smallBlock, blockSize} {
		for _, length := range []int{accesslog.MaxLine - 1, accesslog.MaxLine, accesslog.MaxLine + 1, accesslog.MaxLine + 2, smallBlock - 1, smallBlock, smallBlock + 1, blockSize, 3*blockSize + 5} {
			long := strings.Repeat("x", length)
			for _, end := range []string{"\n", "\r\n"} {
				for _, text := range []string{
					long + end + "a" + end,
					"a" + end + long + end + "b" + end,
					"a" + end + long + end + long + end + "b",
					"a" + end + long,
					long,
					long + end,
				} {
					checkCut(t, []byte(text), strings.NewReader(text), bufSize)
				}
			}
		}
	}
}

// TestLineChunkerRandom cuts random lines, many too long, read in random pieces.
func TestLineChunkerRandom(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		var data []byte
		for range rnd.IntN(12) {
			length := []int{0, 1, rnd.IntN(100), rnd.IntN(accesslog.MaxLine), accesslog.MaxLine - 2 + rnd.IntN(6), rnd.IntN(3 * accesslog.MaxLine)}[rnd.IntN(6)]
			data = append(data, bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, length)...)
			data = append(data, []string{"\n", "\r\n", "\r\r\n"}[rnd.IntN(3)]...)
		}
		data = data[:len(data)-min(len(data), rnd.IntN(3))]
		checkCut(t, data, &pieces{bytes.NewReader(data), rnd}, smallBlock+rnd.IntN(200))
	}
}

// pieces reads as little as it likes, and sometimes the end with the last.
type pieces struct {
	src *bytes.Reader
	rnd *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	n, err := p.src.Read(b[:min(len(b), 1+p.rnd.IntN(50_000))])
	if err == nil && p.src.Len() == 0 && p.rnd.IntN(2) == 0 {
		err = io.EOF
	}
	return n, err
}

// TestLineChunkerKeepsReadData has reading fail in the middle: what came before
// is given out, and the failure is kept.
func TestLineChunkerKeepsReadData(t *testing.T) {
	c := lineChunker{src: io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF))}
	data, tooLong := c.next(make([]byte, smallBlock))
	if string(data) != "a\nb" || tooLong {
		t.Errorf("%q, %v", data, tooLong)
	}
	if data, tooLong = c.next(make([]byte, smallBlock)); len(data) > 0 || tooLong {
		t.Errorf("after the end: %q, %v", data, tooLong)
	}
	if c.failure() != io.ErrUnexpectedEOF {
		t.Errorf("failure is %v", c.failure())
	}
}

// FuzzCutter cuts data, in which each 'L' stands for a long run, as the
// reference does.
func FuzzCutter(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), uint16(0))
	f.Add([]byte("LLLL\nLL\r\nL\n"), uint16(7))
	f.Fuzz(func(t *testing.T, short []byte, extra uint16) {
		if len(short) > 200 {
			return // long enough runs make a test, not a longer one
		}
		data := bytes.ReplaceAll(short, []byte("L"), bytes.Repeat([]byte("l"), 30_000))
		checkCut(t, data, bytes.NewReader(data), smallBlock+int(extra))
	})
}
