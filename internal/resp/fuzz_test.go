package resp_test

import (
	"math/rand/v2"
	"slices"
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

// FuzzReplyReader compares replies that come in cut at random with the
// reference, and writes what it has read to read the same again.
func FuzzReplyReader(f *testing.F) {
	for i, stream := range replyStreams {
		f.Add(stream, uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream string, seed uint64) {
		cut := randomCut(rand.New(rand.NewPCG(seed, 0)), stream)
		for _, limits := range []resp.ReplyLimits{smallReplies, usualReplies} {
			if got, want := readReplies(cut, limits), replyReference(stream, limits); !got.equal(want) {
				t.Fatalf("%q:\ngot  %v\nwant %v", cut, got, want)
			}
		}
		written := new(resp.Writer)
		if err := written.SetVersion(3); err != nil {
			t.Fatal(err)
		}
		r := newReplyReader(t, new(chunks(slices.Clone(cut))))
		var first []string
		for {
			v, err := r.Next()
			if err != nil {
				break
			}
			first = append(first, show(v))
			write(written, v)
		}
		again := readReplies([]string{string(written.Bytes())}, resp.ReplyLimits{})
		if len(again.commands) != len(first) || again.end != "EOF" {
			t.Fatalf("%q was written as %q, which is %v", first, written.Bytes(), again)
		}
		for i, command := range again.commands {
			if command[0] != first[i] {
				t.Fatalf("%s was written and read as %s", first[i], command[0])
			}
		}
	})
}

// write appends a value with the method of its kind, where there is one that
// takes any text.
func write(w *resp.Writer, v resp.Value) {
	text := string(v.Text)
	switch v.Kind {
	case resp.KindInt:
		w.Int(v.Int)
	case resp.KindBulk:
		w.Bulk(v.Text)
	case resp.KindNull:
		w.Null()
	case resp.KindBool:
		w.Bool(v.Int == 1)
	case resp.KindDouble:
		w.Double(v.Float())
	case resp.KindVerbatim:
		w.Verbatim(v.Format(), text)
	case resp.KindArray:
		w.Array(len(v.Elems))
	case resp.KindMap:
		w.Map(len(v.Elems) / 2)
	case resp.KindSet:
		w.Set(len(v.Elems))
	case resp.KindPush:
		w.Push(len(v.Elems))
	case resp.KindBulkError:
		w.Raw(append([]byte{'!'}, resp.AppendArg(nil, text)[1:]...))
	default: // simple strings, errors and big numbers
		w.Raw([]byte(string(rune(v.Kind)) + text + "\r\n"))
	}
	for _, e := range v.Elems {
		write(w, e)
	}
}
