package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// A record is what Save wrote.
type record struct {
	typ  byte
	data []byte
}

func saved(t *testing.T, e *engine.Engine) (records []record) {
	t.Helper()
	must.Do(t, e.Save(e.Now(), func(typ byte, data []byte) error {
		records = append(records, record{typ, slices.Clone(data)})
		return nil
	}))
	return records
}

func restored(t *testing.T, text string, records []record) *engine.Engine {
	t.Helper()
	e := newEngine(t, text)
	r := e.Restorer()
	for _, x := range records {
		if err := r.Record(journal.Record{Type: x.typ, Data: x.data}); err != nil {
			t.Fatalf("record %q: %v", x.typ, err)
		}
	}
	must.Do(t, r.Wait())
	return e
}

// Restored state gives the same answers as the saved one.
func TestSaveAndRestore(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	for i := range 500 {
		c.Check(event(c, "client", fmt.Sprint("192.0.2.", i%50), "user", fmt.Sprint("u", i%3), "path", "/p"), 1, engine.Terms{})
	}
	c.Add("made", 42, "k")
	must.Get(e.Bans().Ban("flood", []string{"eve"}, time.Hour, "because", ""))(t)
	c.Throttle("k", 5, 10, time.Minute, 4)
	f := restored(t, someRules, saved(t, e))
	d := f.Session()
	for i := range 60 {
		key := fmt.Sprint("192.0.2.", i)
		want, _ := c.PeekRule("per-client", 1, key)
		got, err := d.PeekRule("per-client", 1, key)
		got.RetryAfter, got.ResetAfter, want.RetryAfter, want.ResetAfter = 0, 0, 0, 0 // moments apart
		if got != want || err != nil {
			t.Errorf("%s: got %+v, %v; want %+v", key, got, err, want)
		}
		wantLo, _, _ := sum(c, "requests", key, time.Minute)
		if lo, _, err := sum(d, "requests", key, time.Minute); lo != wantLo || err != nil {
			t.Errorf("%s is counted %d, %v; want %d", key, lo, err, wantLo)
		}
	}
	if lo, _, err := sum(d, "made", "k", 0); lo != 42 || err != nil {
		t.Errorf("the counter that was made has %d, %v", lo, err)
	}
	var bans, want []string
	for b := range e.Bans().All() {
		want = append(want, fmt.Sprint(b.Rule, b.Key, b.Until.UnixNano(), b.Count, b.Reason, b.Source))
	}
	for b := range f.Bans().All() {
		bans = append(bans, fmt.Sprint(b.Rule, b.Key, b.Until.UnixNano(), b.Count, b.Reason, b.Source))
	}
	slices.Sort(bans)
	slices.Sort(want)
	if !slices.Equal(bans, want) || len(bans) < 4 {
		t.Errorf("bans\n%s\nwant\n%s", strings.Join(bans, "\n"), strings.Join(want, "\n"))
	}
	if got, err := d.Throttle("k", 5, 10, time.Minute, 1); err != nil || got.Remaining != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range 3 { // the page became hot before: no edge until its hold ends
		d.Check(event(d, "client", "10.0.0.1", "path", "/p"), uint64(i), engine.Terms{})
	}
	if told := f.Status().Events; told != 0 {
		t.Errorf("%d events were published; want none", told)
	}
}

// State that was saved under other rules is restored for the rules that remain,
// without an error.
func TestRestoreUnderOtherRules(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	for range 2 {
		c.Check(event(c, "client", "192.0.2.1", "user", "u", "path", "/login"), 1, engine.Terms{})
	}
	e.Bans().Ban("flood", []string{"eve"}, time.Hour, "", "")
	other := strings.Replace(someRules, "limit: 3 per 1m", "limit: 10 per 1h", 1)
	other = strings.Replace(other, "name: flood", "name: deluge", 1)
	other = strings.Replace(other, "requests: {key: client, spans: [1s, 1m]}", "requests: {key: user, spans: [1m]}", 1)
	f := restored(t, other, saved(t, e))
	d := f.Session()
	if got, err := d.PeekRule("per-client", 1, "192.0.2.1"); err != nil || got.Remaining != 8 || got.Limit != 10 {
		t.Errorf("%+v, %v", got, err)
	}
	if lo, _, err := sum(d, "requests", "u", 0); lo != 0 || err != nil {
		t.Errorf("what was counted by client is counted by user: %d, %v", lo, err)
	}
	for b := range f.Bans().All() {
		t.Errorf("a ban of a rule that is gone: %+v", b)
	}
}

// Each record is restored without the previous ones: the counts of an automatic counter are its own, whichever other record
// was lost.
func TestRestoreWithoutOneRecord(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	for i, name := range []string{"requests", "made", "made-too"} {
		for key := range 10 {
			must.Do(t, c.Add(name, uint64(100*(i+1)), fmt.Sprint("k", key)))
		}
	}
	c.Take("per-client", 1, "192.0.2.1")
	all := saved(t, e)
	missing := 0
	for i := range all {
		d := restored(t, someRules, slices.Delete(slices.Clone(all), i, i+1)).Session()
		for j, name := range []string{"requests", "made", "made-too"} {
			switch lo, _, err := sum(d, name, "k3", time.Minute); {
			case lo == 0:
				missing++
			case lo != uint64(100*(j+1)) || err != nil:
				t.Errorf("without record %d of type %q, %s has %d, %v; want %d or nothing", i, all[i].typ, name, lo, err, 100*(j+1))
			}
		}
	}
	if missing != 3 {
		t.Errorf("%d times a counter was empty, of %d records; want 3", missing, len(all))
	}
}

// Records that no Save wrote are errors, never a panic.
func FuzzRestore(f *testing.F) {
	e := must.Get(engine.New(engine.Config{}))(f)
	f.Cleanup(e.Close)
	for _, typ := range "lbthr?" {
		f.Add(byte(typ), []byte("x\x00\x01\x02"))
	}
	const head = `{"name":"n","fields":["key"],"made":true}`
	f.Add(byte('t'), []byte(head))
	f.Add(byte('t'), []byte(head+"\x00k\x05"))
	f.Fuzz(func(t *testing.T, typ byte, data []byte) {
		for _, record := range []journal.Record{{Type: typ, Data: data}, {Type: 't', Data: append([]byte(head+"\x00"), data...)}, {Type: 'b', Data: data}} {
			r := e.Restorer()
			_ = r.Record(record)
			_ = r.Wait()
		}
		c := e.Session()
		c.Check(&match.Event{}, 1, engine.Terms{})
	})
}

// The ban journal brings bans and unbans back in order.
func TestRestoreBans(t *testing.T) {
	e := newEngine(t, someRules)
	r := e.Restorer()
	now := e.Now()
	line := func(format string, args ...any) {
		t.Helper()
		if err := r.Record(journal.Record{Type: 'b', Data: fmt.Appendf(nil, format, args...)}); err != nil {
			t.Error(err)
		}
	}
	ban := `{"rule":"flood","key":[%q],"since":%q,"until":%q,"count":0,"reason":"r","source":"ada"}`
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339Nano) }
	line(`{"ban":`+ban+`}`, "a", at(-time.Minute), at(time.Hour))
	line(`{"ban":`+ban+`}`, "b", at(-time.Minute), at(time.Hour))
	line(`{"unban":`+ban+`}`, "b", at(-time.Second), at(0))
	line(`{"ban":`+ban+`}`, "over", at(-time.Hour), at(-time.Minute))
	line(`{"ban":`+ban+`}`, "future", at(10*time.Hour), at(11*time.Hour)) // the clock was set back by ten hours
	line(`{"unban":{"rule":"gone","key":["b"],"until":%q}}`, at(0))
	left := make(map[string]time.Duration)
	for b := range e.Bans().All() {
		left[b.Values()[0]] = b.Until.Sub(now).Round(time.Minute)
	}
	if len(left) != 2 || left["a"] != time.Hour || left["future"] != time.Hour {
		t.Errorf("bans: %v", left)
	}
	if err := r.Record(journal.Record{Type: 'b', Data: []byte(`{}`)}); err == nil {
		t.Error("an empty line is accepted")
	}
}

// TestRestoreOfADamagedChunk has a chunk with a wrong checksum, which the journal has taken for whole.
func TestRestoreOfADamagedChunk(t *testing.T) {
	r := newEngine(t, someRules).Restorer()
	_ = r.Record(journal.Record{Type: 'l', Data: []byte("c\x01\x00 something")})
	if err := r.Wait(); err == nil {
		t.Error("a chunk with a wrong checksum is accepted")
	}
}
