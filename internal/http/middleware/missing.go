package middleware

import (
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// MissingSources returns the sources of the field in Decision.Missing, or of each alternative in
// it. The source of a field that set does not declare has only a name.
func MissingSources(set *ratelimit.Set, missing string) (all []match.Source) {
	for name := range strings.SplitSeq(missing, " | ") {
		s := match.Source{Field: name}
		if i := slices.IndexFunc(set.Internal().Sources(), func(declared match.Source) bool { return declared.Field == name }); i >= 0 {
			s = set.Internal().Sources()[i]
		}
		all = append(all, s)
	}
	return all
}

// MissingText returns a sentence for the client of a request that lacks a field.
func MissingText(set *ratelimit.Set, missing string) string {
	var places []string
	for _, s := range MissingSources(set, missing) {
		places = append(places, intake.Place(&s))
	}
	return "the request lacks " + strings.Join(places, " or ")
}
