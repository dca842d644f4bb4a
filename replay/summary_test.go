package replay

import (
	"testing"
	"time"

	"github.com/lately-go/lately/api"
)

func TestSummary(t *testing.T) {
	at := Epoch{time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	top := []TopKey{{Key: api.KeyOf("a\x1b", "/x"), Count: 30}}
	for want, rep := range map[string]*Report{
		"":                                    {},
		`a\x1b /x made 30.0 % of the events.`: {First: &at, Events: 100, Top: top},
		`a\x1b /x made 30.0 % of the events; the busiest 5m began at 2026-03-02 12:05:00 UTC with 70 of them; and no event was refused.`: {
			First: &at, Events: 100, Top: top, Timeline: &Timeline{Start: at, BarSeconds: 300, Events: []int64{30, 70}, Refusals: Refusals{Refused: []int64{0, 0}}},
		},
		`a\x1b /x made 50.0 % of the events; and 1 event (50.0 %) was refused.`: { // no bar is busy
			First: &at, Events: 2, Top: []TopKey{{Key: top[0].Key, Count: 1}}, Timeline: &Timeline{Start: at, BarSeconds: 1, Events: []int64{1, 0, 1}, Refusals: Refusals{Refused: []int64{0, 0, 1}}},
		},
		`a\x1b /x made 30.0 % of the events; and 3 events (3.0 %) were refused, most by b.`: {
			First: &at, Events: 100, Top: top, Timeline: &Timeline{Start: at, BarSeconds: 300, Events: []int64{100}, Refusals: Refusals{Refused: []int64{3}}},
			Rules: []RuleReport{{Name: "a", Refused: new(int64(1))}, {Name: "hot"}, {Name: "b", Refused: new(int64(2))}},
		},
	} {
		if got := rep.summary(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
