package replay_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lately-go/lately/replay"
)

// TestTextStyle has colour only when it is asked for, and then only around
// headings.
func TestTextStyle(t *testing.T) {
	r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", smallLog(20))}, Format: smallFormat})
	var plain, color bytes.Buffer
	if err := r.WriteText(&plain, replay.TextStyle{}); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteText(&color, replay.TextStyle{Color: true}); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(plain.Bytes(), '\x1b') {
		t.Errorf("sequences in plain text: %q", plain.Bytes())
	}
	if got := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(color.String()); got != plain.String() || got == color.String() {
		t.Errorf("in colour:\n%s\nplain:\n%s", color.Bytes(), plain.Bytes())
	}
}

// TestTimelineBars has as many events in the bars as there are, and bars that
// cover the whole time, at every length of it.
func TestTimelineBars(t *testing.T) {
	for _, n := range []int{1, 2, 59, 60, 61, 100, 121, 3601} {
		r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", smallLog(n))}, Format: smallFormat})
		sum := int64(0)
		for _, c := range r.Timeline {
			sum += c
		}
		covered := int64(r.Bar.Seconds()) * int64(len(r.Timeline))
		if sum != int64(n) || len(r.Timeline) > 60 || covered < int64(n) || covered-int64(n) >= int64(r.Bar.Seconds()) {
			t.Errorf("%d events, one a second: %d in %d bars of %v", n, sum, len(r.Timeline), r.Bar)
		}
	}
}
