package keptevents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/match"
)

func eventOf(fields ...string) *match.Event {
	ev := new(match.Event)
	for i := 0; i < len(fields); i += 2 {
		ev.SetNamedString(fields[i], fields[i+1])
	}
	return ev
}

// TestAnswersJoinRequests keeps answers with the places of their requests, and one with all fields, and reads them with the fields of both.
func TestAnswersJoinRequests(t *testing.T) {
	q := keptevents.New(1 << 20)
	begin := time.Unix(1e9, 0)
	var want []string
	add := func(part match.Part, at time.Time, fields ...string) {
		slices.Sort(fields)
		want = append(want, fmt.Sprint(part, at.Unix(), fields))
	}
	for i := range 3000 { // in several chunks
		at, client, stripe := begin.Add(time.Duration(i)*time.Minute), fmt.Sprint("c", i), uint64(i)
		place := q.Add(stripe, at, eventOf("client", client, "path", "/a"), 1)
		add(match.Request, at, "client="+client, "path=/a")
		switch i % 3 {
		case 0:
			q.AddAnswer(stripe+1, at.Add(time.Second), eventOf("client", "other", "status", "404"), 1, place)
			add(match.Answer, at.Add(time.Second), "client="+client, "path=/a", "status=404")
		case 1:
			q.AddAnswer(stripe, at.Add(time.Second), eventOf("client", client, "status", "401"), 1, 0)
			add(match.Answer, at.Add(time.Second), "client="+client, "status=401")
		case 2:
			q.Add(stripe, at, eventOf("client", client, "status", "200"), 1)
			add(match.Whole, at, "client="+client, "status=200")
		}
	}
	all := q.Events()
	defer all.Close()
	var got []string
	for ev := range all.All() {
		var fields []string
		for name, value := range ev.Fields() {
			fields = append(fields, name+"="+string(value))
		}
		slices.Sort(fields)
		got = append(got, fmt.Sprint(ev.Part, ev.Time.Unix(), fields))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || all.Missed != (keptevents.Missed{}) {
		t.Errorf("%d events, want %d; missed %+v", len(got), len(want), all.Missed)
	}
}

// TestAnswersOfDroppedRequests counts the answers to requests that are not kept any more, and those to made-up places.
func TestAnswersOfDroppedRequests(t *testing.T) {
	q := keptevents.New(1 << 20)
	begin := time.Unix(1e9, 0)
	old := q.Add(0, begin, eventOf("client", "old"), 1)
	for i := range 2000 {
		q.Add(0, begin.Add(time.Second+time.Duration(i)), eventOf("client", "c", "path", strings.Repeat("x", 1000)), 1)
	}
	young := q.Add(0, begin.Add(time.Minute), eventOf("client", "young"), 1)
	for _, place := range []keptevents.Place{old, young, 1<<63 - 1, young + 1<<16, young | 0xffff} {
		q.AddAnswer(0, begin.Add(time.Hour), eventOf("status", "404"), 1, place)
	}
	all := q.Events()
	defer all.Close()
	answers := 0
	for range 2 {
		answers = 0
		for ev := range all.All() {
			if ev.Part == match.Answer {
				if answers++; string(ev.Get(match.Client)) != "young" {
					t.Errorf("an answer of %q", ev.Get(match.Client))
				}
			}
		}
	}
	if answers != 1 || all.Missed.Answers != 4 || all.Since.IsZero() {
		t.Errorf("%d answers, %+v missed", answers, all.Missed)
	}
}
