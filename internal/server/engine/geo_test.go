package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/geotest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestGeo looks up clients of events from services and from logs, and only for rules that use the result.
func TestGeo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	data := geotest.File(map[string]map[string]any{"192.0.2.0/24": {"country_code": "AT"}})
	must.Do(t, os.WriteFile(path, data, 0o600))
	db := must.Get(geo.Open(path))(t)
	const byCountry = "version: 1\nlimits:\n  - {name: far, key: country, limit: 0 per 1m}\n"
	e := must.Get(engine.New(engine.Config{Rules: parse(t, byCountry), Geo: db}))(t)
	defer e.Close()
	c := e.Session()
	decide := func(client string) (checked, logged, located bool) {
		t.Helper()
		d := must.Get(c.Check(event(c, "client", client), 1, engine.Terms{}))(t)
		var ev match.Event
		ev.Time = time.Now()
		ev.SetString(match.Client, client)
		l := c.CheckLogged(&ev)
		return d.Allowed, l.Allowed, len(ev.GetNamed(eventfield.Country)) > 0
	}
	if checked, logged, located := decide("192.0.2.1"); checked || logged || !located {
		t.Errorf("an address of the country: checked %t, logged %t, located %t", checked, logged, located)
	}
	if checked, logged, located := decide("198.51.100.1"); !checked || !logged || located {
		t.Errorf("another address: checked %t, logged %t, located %t", checked, logged, located)
	}
	if _, err := e.Replace(parse(t, "version: 1\nlimits:\n  - {name: far, key: asn, limit: 0 per 1m}\n"), true); err == nil || !strings.Contains(err.Error(), "field asn: it needs --geo FILE") {
		t.Errorf("rules with a field that no file has: %v", err)
	}
	must.Get(e.Replace(parse(t, "version: 1\nlimits:\n  - {name: far, key: client, limit: 0 per 1m}\n"), true))(t)
	if _, _, located := decide("192.0.2.1"); located {
		t.Error("a client was looked up for rules that do not use its country")
	}
	if _, err := engine.New(engine.Config{Rules: parse(t, byCountry)}); err == nil || !strings.Contains(err.Error(), "field country: it needs --geo FILE") {
		t.Errorf("without files: %v", err)
	}
}
