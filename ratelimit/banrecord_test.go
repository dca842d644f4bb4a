package ratelimit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

var (
	banSince = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	banUntil = banSince.Add(10 * time.Minute)
)

func banRecordOf(key ...string) ratelimit.BanRecord {
	return ratelimit.BanRecord{
		Rule: "login", Key: key, Since: banSince, Until: banUntil, Count: 2,
		Reason: "more than 20 refusals in 5m", Source: "rule",
	}
}

func written(t testing.TB, bans ...ratelimit.BanRecord) []byte {
	t.Helper()
	var text []byte
	for _, r := range bans {
		line := must.Get(r.MarshalJSON())(t)
		text = append(text, line...)
	}
	return text
}

func TestBanRecordJSON(t *testing.T) {
	full, spare := banRecordOf("192.0.2.1", "<root>"), banRecordOf("k")
	spare.Since, spare.Count, spare.Reason, spare.Source = time.Time{}, 0, "", ""
	spare.Until = banUntil.Add(5).In(time.FixedZone("", 3600))
	got := string(written(t, full, spare, banRecordOf("a\xffb", "c")))
	want := `{"rule":"login","key":["192.0.2.1","<root>"],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:14:05Z",` +
		`"count":2,"reason":"more than 20 refusals in 5m","source":"rule"}
{"rule":"login","key":["k"],"until":"2026-01-02T03:14:05.000000005Z"}
{"rule":"login","key_base64":["Yf9i","Yw=="],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:14:05Z",` +
		`"count":2,"reason":"more than 20 refusals in 5m","source":"rule"}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestBanRecordRoundTrip writes bans of keys with any bytes, and reads them.
func TestBanRecordRoundTrip(t *testing.T) {
	rnd := randtest.New(t)
	var bans []ratelimit.BanRecord
	for range 2000 {
		text := func(most int) string {
			b := make([]byte, 1+rnd.IntN(most))
			for i := range b {
				b[i] = byte(rnd.Uint32() >> rnd.IntN(8))
			}
			return string(b)
		}
		r := banRecordOf()
		for range 1 + rnd.IntN(8) {
			r.Key = append(r.Key, text(1<<rnd.IntN(8)))
		}
		r.Since = banUntil.Add(-time.Duration(1 + rnd.Int64N(1e18)))
		r.Count = rnd.Uint64() >> rnd.IntN(64)
		r.Reason, r.Source = strings.ToValidUTF8(text(80), "\u2028"), strings.ToValidUTF8(text(20), "&")
		bans = append(bans, r)
	}
	for _, want := range bans {
		var got ratelimit.BanRecord
		if err := json.Unmarshal(written(t, want), &got); err != nil || !sameBan(got, want) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
}

func TestBanRecordErrors(t *testing.T) {
	good := string(written(t, banRecordOf("k")))
	change := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%s has no %s", good, old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"syntax":        {"{", []string{"unexpected end of JSON input"}},
		"text":          {"192.0.2.1", []string{"invalid character"}},
		"null":          {"null", []string{"rule: missing"}},
		"two":           {strings.TrimSpace(good) + good, []string{"invalid character '{' after top-level value"}},
		"unknown":       {change(`"until"`, `"untill"`), []string{`field: "untill"`, "must be rule, key or key_base64, since, until"}},
		"no rule":       {change(`"login"`, `""`), []string{"rule: missing", "name of a rule"}},
		"no key":        {change(`"key":["k"],`, ""), []string{"key: missing", "a value for each field"}},
		"empty key":     {change(`["k"]`, `[]`), []string{"key: missing"}},
		"null in key":   {change(`["k"]`, `["k",null]`), []string{"key: value 2: missing"}},
		"key no list":   {change(`["k"]`, `"k"`), []string{"key", "string"}},
		"long key":      {change(`"k"`, `"`+strings.Repeat("k", 1025)+`"`), []string{"key: 1025 bytes", "at most 1024"}},
		"two keys":      {change(`["k"]`, `["k"],"key_base64":["aw=="]`), []string{"key_base64 is there too"}},
		"base64":        {change(`"key":["k"]`, `"key_base64":["?"]`), []string{"illegal base64"}},
		"not UTF-8":     {change(`"k"`, "\"\xff\""), []string{"not UTF-8", "key_base64"}},
		"no until":      {change(`"until":"2026-01-02T03:14:05Z",`, ""), []string{"until: missing", "end of the ban"}},
		"until early":   {change("03:14:05Z", "03:04:05Z"), []string{"until: 2026-01-02T03:04:05Z", "after since, 2026-01-02T03:04:05Z"}},
		"until no time": {change("2026-01-02T03:14:05Z", "tomorrow"), []string{"tomorrow"}},
		"late year":     {change("2026-01-02T03:14:05Z", "9999-12-31T23:59:59-01:00"), []string{"out of range", "years 0 to 9999"}},
		"early year":    {change("2026-01-02T03:04:05Z", "0000-01-01T00:00:00+01:00"), []string{"out of range", "years 0 to 9999"}},
		"count":         {change(`"count":2`, `"count":-2`), []string{"count", "-2"}},
		"reason":        {change("refusals", strings.Repeat("x", 256)), []string{"reason: 275 bytes", "at most 256"}},
		"source":        {change(`"source":"rule"`, `"source":"`+strings.Repeat("x", 65)+`"`), []string{"source: 65 bytes", "at most 64"}},
	} {
		wantParts(t, name, json.Unmarshal([]byte(c.line), new(ratelimit.BanRecord)), c.want...)
	}
}

// FuzzBanRecord reads any bytes: what was read is written, and read again with the same result.
func FuzzBanRecord(f *testing.F) {
	for _, line := range [][]byte{written(f, banRecordOf("k")), written(f, banRecordOf("a", "\xff")), []byte("{}"), []byte("null"), []byte("[]")} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again ratelimit.BanRecord
		if json.Unmarshal(b, &r) != nil {
			return
		}
		if err := json.Unmarshal(written(t, r), &again); err != nil || !sameBan(again, r) {
			t.Errorf("%+v is read again as %+v, %v", r, again, err)
		}
	})
}

func sameBan(a, b ratelimit.BanRecord) bool {
	return a.Rule == b.Rule && slices.Equal(a.Key, b.Key) && a.Since.Equal(b.Since) && a.Until.Equal(b.Until) &&
		a.Count == b.Count && a.Reason == b.Reason && a.Source == b.Source
}

func TestBanRecordInOtherJSON(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := ratelimit.BanRecord{
		Rule: "login", Key: []string{"a<b", "\xff"}, Since: since, Until: since.Add(10 * time.Minute), Count: 2,
		Reason: "more than 20 refusals in 5m", Source: "rule",
	}
	b := must.Get(json.Marshal(map[string]any{"ban": r}))(t)
	var got map[string]ratelimit.BanRecord
	if err := json.Unmarshal(b, &got); err != nil || !sameBan(got["ban"], r) {
		t.Errorf("got %+v, %v, want %+v", got, err, r)
	}
	if _, err := json.Marshal(ratelimit.BanRecord{}); err == nil {
		t.Error("a ban of nothing was written")
	}
}
