package history_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/test/must"
)

// TestRates samples two rules, one of which is replaced: each second has its own decisions, and an import restores the
// exported ones.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now history.Sample
		now.Rules.Add("a", history.Outcomes{})
		h := history.New(time.Now(), func() history.Sample { return now })
		tick := func(name string, allowed uint64) {
			time.Sleep(time.Second)
			now.All[0] += 10
			now.Rules = history.Rules{}
			now.Rules.Add(name, history.Outcomes{allowed})
			h.Tick()
		}
		tick("a", 3)
		tick("a", 7)
		tick("b", 2)
		rates := h.Rates(10*time.Second, 10, true)
		if len(rates) != 3 || rates[0].Rules["a"].Allowed != 3 || rates[1].Rules["a"].Allowed != 4 || rates[2].Rules["b"].Allowed != 2 || rates[2].All.Allowed != 10 {
			t.Errorf("%+v", rates)
		}
		for range 120 {
			tick("b", 2)
		}
		h.Mark(history.Reloaded)
		restored := history.New(time.Now(), func() history.Sample { return now })
		for record := range h.Export() {
			must.Do(t, restored.Import(record))
		}
		if rates := restored.Rates(time.Hour, 1, false); len(rates) != 1 || rates[0].All.Allowed != 1230 {
			t.Errorf("restored: %+v, want 1230 decisions", rates)
		}
		if err := restored.Import([]byte("{")); err == nil {
			t.Error("a record other than JSON is accepted")
		}
	})
}
