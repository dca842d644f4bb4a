package replay_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
)

// TestTextStyle has colour only if requested, and then only around headings.
func TestTextStyle(t *testing.T) {
	r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", smallLog(20))}, Format: smallFormat})
	var plain, color bytes.Buffer
	must.Do(t, r.WriteText(&plain, replay.TextStyle{}))
	must.Do(t, r.WriteText(&color, replay.TextStyle{Color: true}))
	if bytes.ContainsRune(plain.Bytes(), '\x1b') {
		t.Errorf("sequences in plain text: %q", plain.Bytes())
	}
	if got := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(color.String()); got != plain.String() || got == color.String() {
		t.Errorf("in colour:\n%s\nplain:\n%s", color.Bytes(), plain.Bytes())
	}
}

// TestTextLacksFractions expects one sentence about fractions of times, which a live server has, if the log lacks them and
// rules were judged.
func TestTextLacksFractions(t *testing.T) {
	limits := []replay.WhatIf{whatIf(t, replay.Limit, "1/1m"), whatIf(t, replay.Limit, "2/1m")}
	for name, c := range map[string]struct {
		replay.Config
		log  string
		want int
	}{
		"seconds":         {replay.Config{WhatIfs: limits}, "1,a\n", 1},
		"milliseconds":    {replay.Config{WhatIfs: limits}, "1.001,a\n", 1},
		"nanoseconds":     {replay.Config{WhatIfs: limits}, "1.000000001,a\n", 0},
		"no rule":         {replay.Config{}, "1,a\n", 0},
		"floored to that": {replay.Config{WhatIfs: limits, Resolution: time.Second}, "1.5,a\n", 0},
	} {
		c.Files, c.Format = []string{writeFile(t, "log", []byte(c.log))}, smallFormat
		var out bytes.Buffer
		must.Do(t, mustRun(t, c.Config).WriteText(&out, replay.TextStyle{}))
		if got := strings.Count(out.String(), "a live server also has the fractions of times"); got != c.want {
			t.Errorf("%s: the sentence is there %d times, want %d:\n%s", name, got, c.want, out.Bytes())
		}
	}
}

// TestTimesBefore1970 has parts of a second that are counted back from zero.
func TestTimesBefore1970(t *testing.T) {
	log := writeFile(t, "log", []byte("-1.75,a\n-1,b\n-0.5,c\n0,d\n2.25,e\n"))
	hot := must.Get(replay.ParseWhatIf(replay.Hot, "client:1/1s"))(t)
	r := mustRun(t, replay.Config{Files: []string{log}, Format: smallFormat, Resolution: 250 * time.Millisecond, WhatIfs: []replay.WhatIf{hot}})
	var out bytes.Buffer
	must.Do(t, r.WriteText(&out, replay.TextStyle{}))
	for _, want := range []string{
		"1969-12-31 23:59:58.25  a", "1969-12-31 23:59:59  b", "1969-12-31 23:59:59.5  c", "1970-01-01 00:00:00  d", "1970-01-01 00:00:02.25  e",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("missing: %q in\n%s", want, out.Bytes())
		}
	}
}
