package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
)

const busyRules = `version: 1
counters:
  clients: {key: client, spans: [24h, 1m]}
  nets: {key: client/24, spans: [1m]}
limits:
  - {name: tight, key: client, when: {path: /login}, limit: 1 per 1m}
  - {name: wide, key: client, limit: 10 per 1m}
  - {name: pair, key: [client, user], limit: 1 per 1m}
`

// Top returns the peak of each key, and the rule with the counter's key that refused it most. Rules with other keys refuse
// other keys.
func TestTopDescribesItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, busyRules)
		defer synctest.Wait()
		c := e.Session()
		visit := func(n int, fields ...string) {
			for range n {
				check(t, c, event(c, fields...), 1)
			}
		}
		visit(4, "client", "192.0.2.1", "path", "/login")             // 3 refused by tight
		visit(2, "client", "192.0.2.2", "path", "/")                  // allowed
		visit(5, "client", "192.0.2.3", "path", "/x", "user", "\xff") // 4 refused by pair
		time.Sleep(7 * time.Second)
		visit(14, "client", "192.0.2.1", "path", "/") // 9 allowed, 5 refused by wide
		time.Sleep(13 * time.Second)
		visit(1, "client", "192.0.2.4", "path", "/")

		all, err := e.Top("clients", 10, time.Minute, keys.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]api.KeyCount{
			"192.0.2.1": {Peak: 14. / 6, Refused: 5, RefusedBy: "wide"}, // in the slot from 6 s to 12 s
			"192.0.2.2": {Peak: 2. / 6}, "192.0.2.3": {Peak: 5. / 6}, "192.0.2.4": {Peak: 1. / 6},
		}
		same := func(got []api.KeyCount, n int) {
			t.Helper()
			if len(got) != n {
				t.Errorf("%d keys: %+v; want %d", len(got), got, n)
			}
			for _, k := range got {
				if w := want[k.Values()[0]]; k.Peak != w.Peak || k.Refused != w.Refused || k.RefusedBy != w.RefusedBy {
					t.Errorf("%+v, want %+v", k, w)
				}
			}
		}
		same(all, 4)
		one := must.Get(keys.ParseFilter("*.1", ""))(t)
		found := must.Get(e.Top("clients", 10, time.Minute, one))(t)
		same(found, 1)

		// No rule counts by the network, and refusals are not kept for a day.
		if found, err = e.Top("nets", 10, 0, keys.Filter{}); err != nil || len(found) != 1 || found[0].Refused != 0 || found[0].Peak != 14./6 {
			t.Errorf("networks: %+v, %v", found, err)
		}
		found, err = e.Top("clients", 10, 24*time.Hour, keys.Filter{})
		if err != nil || len(found) != 4 || found[0].Refused != 0 || found[0].Peak != 18/(2.4*3600) {
			t.Errorf("over a day: %+v, %v", found, err)
		}
	})
}
