package ratelimit_test

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/snapshot"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// Chunks that the format before checksums had, of a rule "login" by client: a ban
// that an operator added at second 2,050,000,000 for two hours, and one of an hour
// that the rule began 3 s later; and the counters of a key.
const (
	oldBans = "62038090c799ba8988f33801056c6f67696e0b0106636c69656e74002040000c3139382e35312e3130302e3780f0aad6c1a2038080c58bc6d1010080b8992900077363616e6e6572086f70657261746f7200093139322e302e322e318090bfb199d10180c0e285e3680180b89929e0d4838080a080809001"

	oldCounters = "63038090c799ba8988f338056c6f67696e0b0106636c69656e7400204018000000010280b09dc2df010000020001010280b09dc2df01093139322e302e322e3180c8afa025000480d0acf30e8094ebdc0300"
)

// TestImportOfOldBans reads bans of the earlier format, and no counters.
func TestImportOfOldBans(t *testing.T) {
	r := limit(t, "login", per(2, time.Minute))
	var err error
	if r.Key, err = match.NewKey(match.Fold{}, "client"); err != nil {
		t.Fatal(err)
	}
	r.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	now := time.Unix(2_050_000_010, 0)
	m, l := mustMemory(t, mustSet(t, r), ratelimit.Config{})
	bans, _ := hex.DecodeString(oldBans)
	if did, err := m.Import(now, bans); err != nil || did != (window.Imported{Bans: 2}) {
		t.Fatalf("%+v, %v", did, err)
	}
	list := l.Bans().At(now)
	for key, want := range map[string]ratelimit.BanRecord{
		"198.51.100.7": {Since: time.Unix(2_050_000_000, 0), Until: time.Unix(2_050_007_200, 0), Reason: "scanner", Source: "operator"},
		"192.0.2.1":    {Since: time.Unix(2_050_000_004, 0), Until: time.Unix(2_050_003_604, 0), Source: "rule"},
	} {
		ban, held, err := list.Get("login", key)
		if err != nil || !held || !ban.Since.Equal(want.Since) || !ban.Until.Equal(want.Until) || ban.Source != want.Source || want.Reason != "" && ban.Reason != want.Reason {
			t.Errorf("%s: %+v, %t, %v; want %+v", key, ban, held, err, want)
		}
	}
	for i := range bans { // whatever is damaged, nothing panics
		damaged := append([]byte(nil), bans...)
		damaged[i] ^= 0xff
		other, _ := mustMemory(t, mustSet(t, r), ratelimit.Config{})
		_, _ = other.Import(now, damaged)
		_, _ = other.Import(now, bans[:i])
	}

	counters, _ := hex.DecodeString(oldCounters)
	if did, err := m.Import(now, counters); !errors.Is(err, snapshot.ErrOldVersion) || did != (window.Imported{}) {
		t.Errorf("counters of an earlier version: %+v, %v", did, err)
	}
}
