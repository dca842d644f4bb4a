package accesslogtest_test

import (
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestReadersAgreeWithTheTruth reads a log with package accesslog, which detects its format and finds the counts of its
// Truth.
func TestReadersAgreeWithTheTruth(t *testing.T) {
	log, truth := write(t, accesslogtest.Config{Lines: 20_000})
	f, ok := accesslog.Detect(log)
	if !ok || f.String() != "clf" {
		t.Fatalf("Detect returns %v, %v", f, ok)
	}
	p := must.Get(f.NewParser(accesslog.Options{}))(t)
	var e match.Event
	var lines, bad, flood, crowd, asks int
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
		switch client := string(e.Get(match.Client)); {
		case client == truth.Flood.Clients[0]:
			flood++
		case client == truth.Crowd.Clients[0]:
			crowd++
		}
		if string(e.Get(match.Path)) == truth.HotProduct.Path {
			asks++
		}
	}
	if lines != truth.Lines || bad != truth.Bad || flood != truth.Flood.Lines || asks != truth.HotProduct.Lines {
		t.Errorf("%d lines, %d bad, %d of the flood, %d for the hot product; the Truth: %+v", lines, bad, flood, asks, truth)
	}
	if share := truth.Crowd.Lines / len(truth.Crowd.Clients); crowd != share && crowd != share+1 {
		t.Errorf("%d lines by one of the crowd, want %d or one more", crowd, share)
	}
}
