package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
)

// restart returns an engine into which the state of e was brought back.
func restart(t *testing.T, e *engine.Engine, config engine.Config, down time.Duration) *engine.Engine {
	t.Helper()
	records := saved(t, e)
	e.Close()
	time.Sleep(down)
	next := must.Get(engine.New(config))(t)
	restorer := next.Restorer()
	for _, r := range records {
		must.Do(t, restorer.Record(journal.Record{Type: r.typ, Data: r.data}))
	}
	must.Do(t, restorer.Wait())
	return next
}

// Rates continue over restarts: the rates of the hour before are restored, and later
// decisions are added. Starts and reloads are marked.
func TestRatesOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := engine.Config{Rules: parse(t, someRules)}
		e := must.Get(engine.New(config))(t)
		defer func() { e.Close() }()
		busy := func(minutes int) {
			time.Sleep(time.Second / 2) // a sample reads the total and the rules at different moments: events fall between samples
			c := e.Session()
			for m := range minutes {
				for range 10 + m {
					check(t, c, event(c, "client", "192.0.2.1"), 1)
				}
				time.Sleep(time.Minute)
			}
		}
		of := func() (all, rule []uint64) {
			rates := must.Get(e.Rates(time.Hour, 6, true))(t)
			for _, r := range rates {
				all = append(all, r.All.Allowed+r.All.Refused+r.All.Banned)
				rule = append(rule, r.Rules["per-client"].Allowed+r.Rules["per-client"].Refused+r.Rules["per-client"].Banned)
			}
			return all, rule
		}
		busy(30)
		must.Get(e.Replace(parse(t, someRules), true))(t)
		before, _ := of()
		e = restart(t, e, config, 20*time.Second)
		busy(9)
		e = restart(t, e, config, 20*time.Second)
		time.Sleep(40 * time.Second)
		busy(1)
		all, rule := of()
		var was, is uint64
		for _, n := range before {
			was += n
		}
		for _, n := range all {
			is += n
		}
		if want := was + 9*10 + 36 + 10; is != want || was != 30*10+435 {
			t.Errorf("%d decisions before and %d after two restarts, want %d and %d: %v, %v", was, is, 30*10+435, want, before, all)
		}
		if fmt.Sprint(rule) != fmt.Sprint(all) {
			t.Errorf("the rule judged %v of %v", rule, all)
		}
		var marks []string
		for _, m := range e.Marks(time.Hour) {
			marks = append(marks, m.Type)
		}
		if got, want := strings.Join(marks, " "), "start reload start start"; got != want {
			t.Errorf("marks %q, want %q", got, want)
		}
		if got := e.Marks(3 * time.Minute); len(got) != 1 || got[0].Type != history.Started {
			t.Errorf("marks of the last 3 minutes: %v, want the last start", got)
		}
	})
}

// A history of a whole day, restored again and again, keeps a day.
func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := engine.Config{Rules: parse(t, someRules)}
		e := must.Get(engine.New(config))(t)
		for range 3 {
			c := e.Session()
			for range 16 {
				check(t, c, event(c, "client", "192.0.2.1"), 1)
				time.Sleep(time.Hour)
			}
			e = restart(t, e, config, time.Second)
		}
		defer e.Close()
		rates := must.Get(e.Rates(24*time.Hour, 24, false))(t)
		var n uint64
		for _, r := range rates {
			n += r.All.Allowed
		}
		if len(rates) != 24 || n < 23 || n > 25 {
			t.Errorf("%d decisions in %d parts of the last day, want about 24 in 24: %+v", n, len(rates), rates)
		}
	})
}

// A wrong record is an error, and changes nothing.
func TestHistoryOfAnotherKind(t *testing.T) {
	e := newEngine(t, someRules)
	for _, bad := range []string{``, `{"parts":[[1]]}`, `{"names":["a"],"parts":[{"from":1,"to":2}]}`, `{"parts":[{"from":1,"to":2,"rules":[[1]]}]}`, `{"parts":"x"}`} {
		if err := e.Restorer().Record(journal.Record{Type: 'g', Data: []byte(bad)}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if rates, err := e.Rates(time.Hour, 1, true); err != nil || len(rates) > 1 {
		t.Errorf("%v, %v", rates, err)
	}
}
