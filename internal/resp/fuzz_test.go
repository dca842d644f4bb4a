package resp_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/resp"
)

// FuzzReader compares commands that come in cut at random with the reference.
func FuzzReader(f *testing.F) {
	for i, stream := range streams {
		f.Add(stream, uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream string, seed uint64) {
		cut := randomCut(rand.New(rand.NewPCG(seed, 0)), stream)
		for _, limits := range []resp.Limits{small, usual} {
			if got, want := readReady(cut, limits), reference(stream, limits); !got.equal(want) {
				t.Fatalf("%q:\ngot  %v\nwant %v", cut, got, want)
			}
		}
	})
}

// FuzzInline compares the words of a line with the reference.
func FuzzInline(f *testing.F) {
	for _, stream := range streams {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = "c " + strings.ReplaceAll(line, "\n", " ") + "\n"
		if got, want := read([]string{line}, usual), reference(line, usual); !got.equal(want) {
			t.Fatalf("%q:\ngot  %v\nwant %v", line, got, want)
		}
	})
}
