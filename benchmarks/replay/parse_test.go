package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/match"
)

// readLog returns the log that LATELY_LOG names, plain or .gz, or a generated
// one.
func readLog(b *testing.B) []byte {
	b.Helper()
	path := os.Getenv("LATELY_LOG")
	if path == "" {
		var buf bytes.Buffer
		if _, err := accesslogtest.Write(&buf, accesslogtest.Config{}); err != nil {
			b.Fatal(err)
		}
		return buf.Bytes()
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var src io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if src, err = gzip.NewReader(f); err != nil {
			b.Fatal(err)
		}
	}
	data, err := io.ReadAll(src)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// BenchmarkParse parses a whole log from memory, line by line, on one core; the
// figure is lines a second.
func BenchmarkParse(b *testing.B) {
	data := readLog(b)
	format, ok := accesslog.Detect(data[:min(len(data), 256<<10)])
	if !ok {
		b.Fatal("no format fits the log")
	}
	parser, err := format.NewParser(accesslog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var ev match.Event
	lines := 0
	b.ReportAllocs()
	for b.Loop() {
		for rest := data; len(rest) > 0; {
			var line []byte
			line, rest, _ = accesslog.CutLine(rest)
			parser.Parse(line, &ev)
			lines++
		}
	}
	b.SetBytes(int64(len(data)))
	b.ReportMetric(float64(lines)/b.Elapsed().Seconds()/1e6, "Mlines/s")
}
