package ratelimit_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

func sameBan(a, b ratelimit.BanRecord) bool {
	return a.Rule == b.Rule && slices.Equal(a.Key, b.Key) && a.Since.Equal(b.Since) && a.Until.Equal(b.Until) &&
		a.Count == b.Count && a.Reason == b.Reason && a.Source == b.Source
}

// writeBans returns what Export writes of these bans.
func writeBans(t testing.TB, bans ...ratelimit.BanRecord) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, r := range bans {
		if err := json.NewEncoder(&b).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestBanRecordInOtherJSON(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := ratelimit.BanRecord{
		Rule: "login", Key: []string{"a<b", "\xff"}, Since: since, Until: since.Add(10 * time.Minute), Count: 2,
		Reason: "more than 20 refusals in 5m", Source: "rule",
	}
	b, err := json.Marshal(map[string]any{"ban": r})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]ratelimit.BanRecord
	if err := json.Unmarshal(b, &got); err != nil || !sameBan(got["ban"], r) {
		t.Errorf("got %+v, %v, want %+v", got, err, r)
	}
	if _, err := json.Marshal(ratelimit.BanRecord{}); err == nil {
		t.Error("a ban of nothing was written")
	}
}
