package ratelimit_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

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
		line, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
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
	i := 0
	for got, err := range ratelimit.ReadBans(bytes.NewReader(written(t, bans...))) {
		if err != nil || !sameBan(got, bans[i]) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, bans[i])
		}
		i++
	}
	if i != len(bans) {
		t.Errorf("%d bans read, want %d", i, len(bans))
	}
}

func TestReadBansErrors(t *testing.T) {
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
		"long":          {change("refusals", strings.Repeat("x", ratelimit.MaxBanLine)), []string{"too long (max 65536 bytes)"}},
	} {
		var errs []error
		read := 0
		for r, err := range ratelimit.ReadBans(strings.NewReader(good + "\n \r\n" + c.line + "\n" + good)) {
			if err != nil {
				errs = append(errs, err)
			} else if read++; !sameBan(r, banRecordOf("k")) {
				t.Errorf("%s: read %+v", name, r)
			}
		}
		if read != 1 || len(errs) != 1 {
			t.Fatalf("%s: %d bans and the errors %v; want 1 of each", name, read, errs)
		}
		wantParts(t, name, errs[0], append(c.want, "line 4: ")...)
	}
}

func TestBanLineLengths(t *testing.T) {
	head := `{"rule":"r","key":["k"],"until":"2026-01-02T03:14:05Z","reason":"why"`
	for _, n := range []int{ratelimit.MaxBanLine - 1, ratelimit.MaxBanLine, ratelimit.MaxBanLine + 1, ratelimit.MaxBanLine + 2, 3 * ratelimit.MaxBanLine} {
		for _, end := range []string{"", "\n", "\r\n", "\n\n\n"} {
			line := head + strings.Repeat(" ", n-len(head)-1) + "}"
			read, bad := 0, 0
			for _, err := range ratelimit.ReadBans(iotest.OneByteReader(strings.NewReader(line + end))) {
				if err != nil {
					bad++
				} else {
					read++
				}
			}
			if long := n > ratelimit.MaxBanLine; long && (read != 0 || bad != 1) || !long && (read != 1 || bad != 0) {
				t.Errorf("a line of %d bytes and %q: %d bans and %d errors", n, end, read, bad)
			}
		}
	}
}

func TestReadBansStops(t *testing.T) {
	text := written(t, banRecordOf("a"), banRecordOf("b"), banRecordOf("c"))
	broken := errors.New("broken")
	read := 0
	var last error
	for _, err := range ratelimit.ReadBans(io.MultiReader(bytes.NewReader(text[:len(text)-5]), iotest.ErrReader(broken))) {
		read++
		last = err
	}
	if read != 3 || last == nil { // two bans, half a line
		t.Errorf("%d lines, the last %v", read, last)
	}
	last = nil
	for _, err := range ratelimit.ReadBans(iotest.ErrReader(broken)) {
		last = err
	}
	if !errors.Is(last, broken) {
		t.Errorf("error %v, want that of the reader", last)
	}
	for range ratelimit.ReadBans(bytes.NewReader(text)) {
		break
	}
}

// FuzzRead reads any bytes: what is read is written, and read again alike.
func FuzzReadBans(f *testing.F) {
	good := written(f, banRecordOf("k"), banRecordOf("a", "\xff"))
	f.Add(good)
	f.Add([]byte("\n\r\n{}\nnull\n[]\n"))
	f.Add(bytes.ReplaceAll(good, []byte(`"k"`), []byte(`"\ud800","\u0000"`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		lines, items := bytes.Count(b, []byte("\n"))+1, 0
		for r, err := range ratelimit.ReadBans(bytes.NewReader(b)) {
			if items++; err != nil {
				if !strings.HasPrefix(err.Error(), "line ") {
					t.Errorf("an error without its line: %v", err)
				}
				continue
			}
			n := 0
			for again, err := range ratelimit.ReadBans(bytes.NewReader(written(t, r))) {
				if n++; err != nil || !sameBan(again, r) {
					t.Errorf("%+v is read again as %+v, %v", r, again, err)
				}
			}
			if n != 1 {
				t.Errorf("%+v is read again as %d bans", r, n)
			}
		}
		if items > lines {
			t.Errorf("%d bans and errors in %d lines", items, lines)
		}
	})
}
