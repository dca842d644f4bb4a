package follow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// TestBatches passes on the events of a block as one parser reads them one by one: also for lines with more events than a
// batch has.
func TestBatches(t *testing.T) {
	rnd := randtest.New(t)
	format := must.Get(accesslog.ParseFormat("json:time=t@s,client=ip,object=keys[],tenant=of"))(t)
	var data strings.Builder
	for n := range 300 {
		var keys []string
		for range rnd.IntN(4) * (1 + rnd.IntN(300)*rnd.IntN(2)) {
			keys = append(keys, fmt.Sprintf(`"k\u00e9%d"`, rnd.IntN(1000)))
		}
		switch rnd.IntN(20) {
		case 0:
			data.WriteString("bad\n")
		case 1:
			data.WriteString("# of another kind\n")
		default:
			fmt.Fprintf(&data, `{"t":%d,"ip":"192.0.2.%d","of":"a%s","keys":[%s]}`+"\n",
				1700000000+n, rnd.IntN(256), strings.Repeat("x", rnd.IntN(50)*rnd.IntN(50)), strings.Join(keys, ","))
		}
	}
	text := func(ev *match.Event) string {
		s := ev.Time.String()
		for _, name := range eventfield.Names(ev) {
			s += fmt.Sprintf(" %s=%q", name, ev.GetNamed(name))
		}
		return s
	}
	var want, got []string
	var stats api.FollowedLog
	p, ev := newLineParser(format, time.UTC), new(match.Event)
	for line := range strings.Lines(data.String()) {
		stats.Lines++
		ok := p.Parse([]byte(strings.TrimSuffix(line, "\n")), ev)
		switch {
		case p.Skipped():
			stats.Skipped++
		case !ok:
			stats.Bad++
		}
		for ; ok; ok = p.Next(ev) {
			want = append(want, text(ev))
		}
	}
	reader := &logReader{batches: newBatches(), lateness: int64(time.Hour)}
	block := []byte(data.String())
	// At each point between batches, the rest of the block has the remaining events.
	g := &generation{place: place{Offset: 1}, parser: newLineParser(format, time.UTC)}
	reader.passed = func() {
		rest := blockParser{lineParser: newLineParser(format, time.UTC), rest: block[g.Offset-1:], skip: g.Begun, left: len(block) - int(g.Offset-1)}
		var b batch
		if rest.fill(&b); len(got) < len(want) && text(&b.events[0]) != want[len(got)] {
			t.Fatalf("after %d events, %d bytes and %d events of a line, %s is next, want %s", len(got), g.Offset-1, g.Begun, text(&b.events[0]), want[len(got)])
		}
	}
	if err := reader.passBlock(g.parser, &g.linePlace, block, func(ev *match.Event) { got = append(got, text(ev)) }, g.advance); err != nil || g.Offset != 1+int64(len(block)) || g.Begun != 0 {
		t.Errorf("%v; %d of %d bytes and %d events were passed", err, g.Offset-1, len(block), g.Begun)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
	if reader.stats != stats || len(reader.batches) != batches {
		t.Errorf("the figures are %+v, want %+v; %d batches are free, want %d", reader.stats, stats, len(reader.batches), batches)
	}
	for range batches {
		if b := <-reader.batches; len(b.events) > batchEvents || cap(b.text) > 4*batchText {
			t.Errorf("a batch has %d events and %d bytes", len(b.events), cap(b.text))
		}
	}
}
