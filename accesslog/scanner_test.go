package accesslog_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/randtest"
	"github.com/lately-go/lately/match"
)

func newScanner(t *testing.T, r io.Reader, format string) *accesslog.Scanner {
	t.Helper()
	f, err := accesslog.ParseFormat(format)
	if err != nil {
		t.Fatal(err)
	}
	s, err := accesslog.NewScanner(r, f, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// slowScan splits a whole log and parses line by line.
func slowScan(t *testing.T, log, format string) (events []string, lines, parsed int64, bad []accesslog.BadLine) {
	t.Helper()
	p := newParser(t, format, accesslog.Options{})
	all := strings.Split(log, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	for i, line := range all {
		line = strings.TrimSuffix(line, "\r")
		lines++
		if got := eventsOf(p, line); got != nil {
			events = append(events, got...)
			parsed++
		} else if len(bad) < accesslog.MaxBadLines {
			bad = append(bad, accesslog.BadLine{Number: int64(i + 1), Text: line[:min(len(line), accesslog.MaxBadText)]})
		}
	}
	return events, lines, parsed, bad
}

func checkScan(t *testing.T, r io.Reader, log, format string) {
	t.Helper()
	events, lines, parsed, bad := slowScan(t, log, format)
	s := newScanner(t, r, format)
	var got []string
	for s.Scan() {
		got = append(got, fmt.Sprintf("%s>%s", s.Event().Get(match.Client), s.Event().Get(match.Object)))
	}
	if s.Err() != nil || s.Scan() {
		t.Fatalf("error %v", s.Err())
	}
	if fmt.Sprint(got) != fmt.Sprint(events) {
		t.Fatalf("%d events, want %d, or others", len(got), len(events))
	}
	if s.Lines() != lines || s.Parsed() != parsed || s.Bad() != lines-parsed {
		t.Fatalf("lines, parsed, bad = %d, %d, %d, want %d, %d", s.Lines(), s.Parsed(), s.Bad(), lines, parsed)
	}
	if fmt.Sprint(s.BadLines()) != fmt.Sprint(bad) {
		t.Fatalf("bad lines %.300s, want %.300s", fmt.Sprint(s.BadLines()), fmt.Sprint(bad))
	}
}

// randomLog has good, bad, empty and far too long lines, and any line end.
func randomLog(rng *rand.Rand) string {
	var b strings.Builder
	for i := range rng.IntN(30) {
		switch rng.IntN(8) {
		case 0:
			b.WriteString("")
		case 1:
			b.WriteString(strings.Repeat("x", rng.IntN(3*accesslog.MaxLine)))
		case 2:
			line := fmt.Sprintf(`{"t":1,"c":"c%d","h":[1]}`, i)
			b.WriteString(line + strings.Repeat(" ", accesslog.MaxLine-len(line)+rng.IntN(4)-1))
		case 3:
			b.WriteString("bad\r")
		default:
			fmt.Fprintf(&b, `{"t":1,"c":"c%d","h":[1,2,%d]}`, i, i)
		}
		b.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
	}
	log := b.String()
	return log[:len(log)-min(len(log), rng.IntN(4))]
}

func TestScannerAgreesWithSplitting(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		log := randomLog(rng)
		for _, r := range []io.Reader{
			strings.NewReader(log),
			iotest.HalfReader(strings.NewReader(log)),
			iotest.DataErrReader(strings.NewReader(log)),
		} {
			checkScan(t, r, log, "json:time=t@s,client=c,object=h[]")
		}
	}
	log := strings.Repeat(randomLog(rng), 3)
	checkScan(t, iotest.OneByteReader(strings.NewReader(log)), log, "json:time=t@s,client=c,object=h[]")
}

func TestScannerEnds(t *testing.T) {
	good := clfStart + `"-" 200 1`
	for _, log := range []string{
		"", "\n", "\r", "\r\n", "\n\n", "x", good, good + "\r", good + "\n", good + "\r\n\r\n", good + "\n\nx",
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "\n" + good, strings.Repeat("\n", 1000),
	} {
		checkScan(t, strings.NewReader(log), log, "clf")
	}
}

// A reader that fails ends the log; the line it failed in is not counted.
func TestScannerReportsTheReadersError(t *testing.T) {
	failure := errors.New("disk on fire")
	good := clfStart + `"-" 200 1`
	for _, tt := range []struct {
		log   string
		lines int64
	}{
		{"", 0},
		{good, 0},
		{good + "\n", 1},
		{good + "\n" + good[:10], 1},
		{strings.Repeat("x", 1<<20), 0},
	} {
		s := newScanner(t, io.MultiReader(strings.NewReader(tt.log), iotest.ErrReader(failure)), "clf")
		for s.Scan() {
		}
		if s.Err() != failure || s.Lines() != tt.lines {
			t.Errorf("%.20q: error %v, %d lines, want %d", tt.log, s.Err(), s.Lines(), tt.lines)
		}
	}
	s := newScanner(t, idleReader{}, "clf")
	if s.Scan() || s.Err() != io.ErrNoProgress {
		t.Errorf("a reader that gives nothing: error %v", s.Err())
	}
}

type idleReader struct{}

func (idleReader) Read([]byte) (int, error) { return 0, nil }

func TestNewScannerChecksTheOptions(t *testing.T) {
	f, err := accesslog.ParseFormat("syslog-ufw")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accesslog.NewScanner(strings.NewReader(""), f, accesslog.Options{Year: 20222}); err == nil {
		t.Error("year 20222 is taken")
	}
}

func ExampleScanner() {
	log := `192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET /a?page=2 HTTP/1.1" 200 30 "-" "Wren/2.1"
not a line of this log
203.0.113.7 - - [17/Apr/2018:08:25:07 +0200] "POST /login HTTP/1.1" 403 12 "-" "Wren/2.1"
`
	f, err := accesslog.ParseFormat("clf")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := accesslog.NewScanner(strings.NewReader(log), f, accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for s.Scan() {
		ev := s.Event()
		fmt.Printf("%s %s %s %s\n", ev.Time.Format("15:04:05"), ev.Get(match.Client), ev.Get(match.Method), ev.Get(match.Path))
	}
	fmt.Println(s.Lines(), "lines,", s.Bad(), "bad:", s.BadLines(), s.Err())
	// Output:
	// 06:25:06 192.0.2.1 GET /a
	// 06:25:07 203.0.113.7 POST /login
	// 3 lines, 1 bad: [{2 not a line of this log}] <nil>
}
