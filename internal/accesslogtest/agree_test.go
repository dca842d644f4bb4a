package accesslogtest_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/accesslogtest"
	"github.com/lately-go/lately/match"
)

// The readers of package accesslog find in a log what its Truth says, and
// recognise its format.
func TestReadersAgreeWithTheTruth(t *testing.T) {
	for _, format := range accesslogtest.Formats() {
		c := accesslogtest.Config{Format: format, Lines: 20_000, HighBytes: format == accesslogtest.CLF}
		log, truth := write(t, c)
		if f, ok := accesslog.Detect(log); !ok || f.String() != string(format) {
			t.Errorf("%s: Detect says %v, %v", format, f, ok)
		}
		f, err := accesslog.ParseFormat(string(format))
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.NewParser(accesslog.Options{Year: 2026})
		if err != nil {
			t.Fatal(err)
		}
		var (
			e                              match.Event
			lines, bad, flood, crowd, asks int
			first, last                    time.Time
		)
		for rest := log; ; lines++ {
			line, after, ok := accesslog.CutLine(rest)
			if !ok {
				break
			}
			rest = after
			if !p.Parse(line, &e) {
				bad++
				continue
			}
			if first.IsZero() {
				first = e.Time
			}
			last = e.Time
			switch client := string(e.Get(match.Client)); {
			case client == truth.Flood.Clients[0]:
				flood++
			case client == truth.Crowd.Clients[0]:
				crowd++
			}
			if truth.HotProduct.Lines > 0 && string(e.Get(match.Path)) == truth.HotProduct.Path {
				asks++
			}
		}
		if lines != truth.Lines || bad != truth.Bad || flood != truth.Flood.Lines || asks != truth.HotProduct.Lines {
			t.Errorf("%s: %d lines, %d bad, %d of the flood, %d for the hot product; the Truth says %+v", format, lines, bad, flood, asks, truth)
		}
		if share := truth.Crowd.Lines / len(truth.Crowd.Clients); crowd != share && crowd != share+1 {
			t.Errorf("%s: %d lines by one of the crowd, want %d or one more", format, crowd, share)
		}
		if !first.Equal(truth.First) || !last.Equal(truth.Last) {
			t.Errorf("%s: times from %v to %v, want %v to %v", format, first, last, truth.First, truth.Last)
		}
	}
}
