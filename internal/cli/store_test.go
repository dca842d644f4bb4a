package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
)

// TestStoreShown shows the state of a store that servers share: in one line of lately status,
// and in the title of lately top if something is wrong with it.
func TestStoreShown(t *testing.T) {
	m := cannedModel(t, topPaint{}, 120, 40)
	m.live = true
	since := m.theirs().Add(-time.Minute)
	for _, x := range []struct {
		store       *api.StoreStatus
		title, line string
	}{
		{nil, "● live", ""},
		{&api.StoreStatus{Address: "h:6379", Up: true, Since: since, Latency: 1500, Nodes: 3}, "● live", "up at h:6379 since "},
		{&api.StoreStatus{Address: "h:6379", Up: true, Since: since, Nodes: 3, OtherRules: 2}, "● live, other rules on 2 of 3 servers", "servers that enforce other rules than this one: 2"},
		{&api.StoreStatus{Address: "h:6379", Since: since, Error: "refused\x1b[2J"}, "● live, store down 1m", `refused\x1b[2J`},
	} {
		m.reading.status.Store = x.store
		if title, _ := m.linkText(); title != x.title && !(x.title != "● live" && strings.HasPrefix(title, x.title)) {
			t.Errorf("%+v: the title says %q, want %q", x.store, title, x.title)
		}
		var text strings.Builder
		storeLines(&text, x.store)
		if !strings.Contains(text.String(), x.line) || strings.Contains(text.String(), "\x1b") || x.store == nil && text.Len() > 0 {
			t.Errorf("%+v: the status says %q, want %q", x.store, text.String(), x.line)
		}
	}
}
