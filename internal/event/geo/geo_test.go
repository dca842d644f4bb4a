package geo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/geotest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

type fields = map[string]any

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.mmdb")
	must.Do(t, os.WriteFile(path, data, 0o600))
	return path
}

func countries(iso string) []byte {
	return geotest.File(map[string]map[string]any{
		"192.0.2.0/25":   {"country": fields{"iso_code": iso, "names": fields{"en": "a name of more than twenty-nine bytes"}}},
		"192.0.2.128/25": {"country_code": "FR", "asn": "AS64499"},
		"2001:db8::/32":  {"country": "JP"},
	})
}

var numbers = geotest.File(map[string]map[string]any{
	"192.0.2.0/24":    {"autonomous_system_number": uint32(64496), "autonomous_system_organization": "Example"},
	"198.51.100.0/24": {"autonomous_system_number": uint32(64497)},
})

func event(client string) *match.Event {
	var ev match.Event
	ev.SetString(match.Client, client)
	return &ev
}

// TestSet looks clients up in the records of three publishers.
func TestSet(t *testing.T) {
	db := must.Get(Open(write(t, countries("AT")), write(t, numbers)))(t)
	for client, want := range map[string]string{
		"192.0.2.1": "AT 64496", "192.0.2.127": "AT 64496", "192.0.2.128": "FR 64499", "192.0.3.0": " ", "198.51.100.9": " 64497",
		"2001:db8::1": "JP ", "2001:db9::1": " ", "::ffff:192.0.2.1": "AT 64496", "[2001:db8::1]:443": "JP ", "www.example.org": " ", "": " ",
	} {
		for range 2 { // the second time, the record is kept
			ev := event(client)
			db.Set(ev)
			if got := string(ev.GetNamed("country")) + " " + string(ev.GetNamed("asn")); got != want {
				t.Errorf("%q: country and asn %q, want %q", client, got, want)
			}
		}
	}
	ev := event("192.0.2.1")
	ev.SetNamedString("country", "DE")
	db.Set(ev)
	if got := string(ev.GetNamed("country")); got != "DE" {
		t.Errorf("an event that has a country now has %s", got)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		ev.Reset()
		ev.SetString(match.Client, "192.0.2.1")
		db.Set(ev)
	}); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// TestRefresh reads a changed file again, and keeps the current content when the file is damaged or missing.
func TestRefresh(t *testing.T) {
	path := write(t, countries("AT"))
	db := must.Get(Open(path))(t)
	stamp := time.Now()
	replace := func(data []byte) {
		t.Helper()
		stamp = stamp.Add(time.Second)
		must.Do(t, os.WriteFile(path, data, 0o600))
		must.Do(t, os.Chtimes(path, stamp, stamp))
	}
	check := func(wantRead int, wantErr, wantCountry string) {
		t.Helper()
		read, err := db.Refresh()
		if len(read) != wantRead || (err != nil) != (wantErr != "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("read %q, error %v; want %d, %q", read, err, wantRead, wantErr)
		}
		ev := event("192.0.2.1")
		if db.Set(ev); string(ev.GetNamed("country")) != wantCountry {
			t.Errorf("country %s, want %s", ev.GetNamed("country"), wantCountry)
		}
	}
	check(0, "", "AT")
	replace(countries("CH"))
	check(1, "", "CH")
	check(0, "", "CH")
	replace(countries("IT")[:200])
	check(0, path+": ", "CH")
	check(0, "must be a whole file in the mmdb format", "CH") // as long as it is damaged
	must.Do(t, os.Remove(path))
	check(0, "no such file", "CH")
	replace(countries("LI"))
	check(1, "", "LI")
}

func TestErrors(t *testing.T) {
	for name, data := range map[string][]byte{
		"error opening database":                    []byte("not such a file"),
		"no country and no autonomous system in it": geotest.File(map[string]map[string]any{"192.0.2.0/24": {"is_anonymous": "yes"}}),
	} {
		path := write(t, data)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+": "+name) {
			t.Errorf("the error is %v, want %s", err, name)
		}
	}
	db := must.Get(Open(write(t, numbers)))(t)
	for _, x := range []struct {
		db    *DB
		field string
		want  string
	}{{nil, "client", ""}, {nil, "asn", "field asn: it needs --geo FILE"}, {nil, "country", "field country: it needs --geo FILE"}, {db, "asn", ""}, {db, "country", "that has countries"}} {
		if field, err := x.db.missing([]string{x.field}); (field != "") != (x.want != "") || !strings.Contains(err, x.want) {
			t.Errorf("%s: %v, want %q", x.field, err, x.want)
		}
	}
}

// BenchmarkSet is the cost of an event.
func BenchmarkSet(b *testing.B) {
	db := must.Get(Open(write(b, countries("AT")), write(b, numbers)))(b)
	var ev match.Event
	b.ReportAllocs()
	for b.Loop() {
		ev.Reset()
		ev.SetString(match.Client, "192.0.2.1")
		db.Set(&ev)
	}
}

// TestManyRecords looks up more records than are kept, so that some have the same place.
func TestManyRecords(t *testing.T) {
	const n = 20_000
	records := map[string]map[string]any{}
	client := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }
	for i := 1; i < n; i++ {
		records[client(i)+"/32"] = fields{"autonomous_system_number": uint32(i)}
	}
	db := must.Get(Open(write(t, geotest.File(records))))(t)
	for range 2 {
		for i := 1; i < n; i++ {
			ev := event(client(i))
			if db.Set(ev); string(ev.GetNamed("asn")) != strconv.Itoa(i) {
				t.Fatalf("%s: asn %s, want %d", client(i), ev.GetNamed("asn"), i)
			}
		}
	}
}
