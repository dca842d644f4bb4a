package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
)

// TestReserveAndSettle reserves one at a time and in lists, in the usual form and in one that is decoded, and settles all
// of them with wrong ids between.
func TestReserveAndSettle(t *testing.T) {
	s := newServer(t, nil)
	var ids []string
	for i, body := range []string{
		`{"rule":"per-client","key":"203.0.113.80","cost":3,"for_ms":60000}`,
		`{"rule":"per-client","\u006bey":"203.0.113.81","cost":3,"for_ms":60000}`,
		`{"event":{"client":"203.0.113.82","path":"/"},"cost":3}`,
		`{"\u0065vent":{"client":"203.0.113.83","path":"/"},"cost":3,"for_ms":60000}`,
	} {
		var d api.Decision
		if w := post(s, "/v1/reserve", body); json.Unmarshal(w.Body.Bytes(), &d) != nil || !d.Allowed || d.ID == "" {
			t.Errorf("reservation %d: %s", i, w.Body)
		}
		ids = append(ids, d.ID)
	}
	for _, body := range []string{
		`{"takes":[{"rule":"per-client","key":"203.0.113.84","cost":3},{"rule":"nosuch","key":"a"},{"rule":"per-client","key":"203.0.113.85","cost":3,"for_ms":1000}]}`,
		`{"events":[{"event":{"client":"203.0.113.86","path":"/"},"cost":3},{"event":{"client":"203.0.113.87","path":"/"},"cost":3,"for_ms":60000}]}`,
	} {
		var all api.Results
		w := post(s, "/v1/reserve", body)
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		for _, r := range all.Decisions {
			if (r.Error == nil) != (r.Decision != nil && r.ID != "") {
				t.Errorf("%s", w.Body)
			}
			if r.Error == nil {
				ids = append(ids, r.ID)
			}
		}
	}
	var list strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&list, `{"id":%q,"cost":1},{"id":%q,"cost":1},`, id, id)
	}
	var all api.SettleResults
	w := post(s, "/v1/settle", `{"settlements":[`+list.String()+`{"id":"x","cost":1}]}`)
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || len(all.Settlements) != 2*len(ids)+1 || len(ids) != 8 {
		t.Fatalf("%s: %v", w.Body, err)
	}
	for i, r := range all.Settlements[:2*len(ids)] {
		if r.Error != nil || r.Settled.Settled != (i%2 == 0) {
			t.Errorf("settlement %d: %+v", i, r)
		}
	}
	if r := all.Settlements[2*len(ids)]; r.Error == nil || r.Error.Code != api.BadID {
		t.Errorf("a made-up id: %+v", r)
	}
	for i := range ids {
		var d api.Decision
		if w := post(s, "/v1/peek", fmt.Sprintf(`{"rule":"per-client","key":"203.0.113.8%d"}`, i)); json.Unmarshal(w.Body.Bytes(), &d) != nil || d.Limit-d.Remaining != 2 {
			t.Errorf("client %d, with 1 settled: %s", i, w.Body)
		}
	}
}
