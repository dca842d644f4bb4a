package when_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/match"
)

func TestFields(t *testing.T) {
	about := func(field string) match.When { return match.When{Fields: map[string][]string{field: {"x"}}} }
	for _, c := range []struct {
		w             match.When
		fields, needs []string // needs is nil if all are needed
	}{
		{match.When{}, nil, nil},
		{match.When{
			Method: []string{"GET"}, Path: []string{"/"}, Status: []string{"404"}, Client: []netip.Prefix{netip.MustParsePrefix("::/0")},
			Fields: map[string][]string{"tenant": {"x"}, "agent|  host": {"y"}},
		}, []string{"method", "path", "status", "client", "agent | host", "tenant"}, nil},
		{match.When{
			Method: []string{"GET"},
			Any: []match.When{
				{Status: []string{"404"}, Path: []string{"/"}, Not: []match.When{about("agent")}},
				{Path: []string{"/x"}, Client: []netip.Prefix{netip.MustParsePrefix("::/0")}},
			},
			Not: []match.When{about("tenant")},
		}, []string{"method", "path", "status", "agent", "path", "client", "tenant"}, []string{"method", "path"}},
	} {
		want := c.needs
		if want == nil {
			want = c.fields
		}
		if fields, needs := when.Fields(&c.w), when.Needs(&c.w); !slices.Equal(fields, c.fields) || !slices.Equal(needs, want) {
			t.Errorf("%+v uses %v, want %v, and needs %v, want %v", c.w, fields, c.fields, needs, want)
		}
	}
}
