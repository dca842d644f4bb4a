package refusal

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/http/ratelimitheader"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Decisions about rules that the set does not have, since the rules have changed.
func TestUnknownRules(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "api", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	}))(t)
	policies, h := ratelimitheader.New(set, false), make(http.Header)
	for _, d := range []ratelimit.Decision{
		{Allowed: true},
		{Allowed: true, Rule: "other", Limit: 1},
		{Rule: "other", Limit: 1, RetryAfter: ratelimit.Never},
	} {
		outcomes := policies.Deciding(nil, &d)
		policies.WriteHeader(h, nil, outcomes, &d)
		r := Refusal{set, &policies, d, outcomes}
		r.WriteHeader(h, 0)
		if len(h) != 0 {
			t.Errorf("%+v: headers %v; want none", d, h)
		}
	}
	r := Refusal{set, &policies, ratelimit.Decision{Rule: "other", RetryAfter: time.Second}, nil}
	body, _, status := r.AppendBody(nil, nil, nil, nil)
	if !json.Valid(body) || status != http.StatusTooManyRequests {
		t.Errorf("%d %s; want a problem document of status 429", status, body)
	}
}
