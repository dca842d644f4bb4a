package limit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
)

func TestZoneOf(t *testing.T) {
	berlin, again := must.Get(time.LoadLocation("Europe/Berlin"))(t), must.Get(time.LoadLocation("Europe/Berlin"))(t)
	if berlin == again || limit.ZoneOf(berlin) != limit.ZoneOf(again) {
		t.Error("a zone that is loaded twice is two")
	}
	if want := (limit.Zone{Name: "Europe/Berlin", January: 3600}); limit.ZoneOf(berlin) != want {
		t.Errorf("%+v; want %+v", limit.ZoneOf(berlin), want)
	}
	seen := map[limit.Zone]*time.Location{}
	for _, zone := range []*time.Location{nil, time.UTC, berlin, must.Get(time.LoadLocation("Europe/Rome"))(t), time.FixedZone("Europe/Berlin", 0), time.FixedZone("", 60)} {
		if other, twice := seen[limit.ZoneOf(zone)]; twice {
			t.Errorf("%v and %v are one zone", zone, other)
		}
		seen[limit.ZoneOf(zone)] = zone
	}
}
