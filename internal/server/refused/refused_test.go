package refused_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/refused"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestStore counts refusals of more keys than fit, with an example of each: a key that is refused again and again is not
// evicted, and keys of a removed rule are not split.
func TestStore(t *testing.T) {
	s := refused.New()
	r := &ratelimit.Rule{Name: "a", Key: match.MustKey("client")}
	now := time.Unix(1_700_000_000, 0)
	key := func(name string) []byte { return append(refused.AppendRule(nil, r), name...) }
	var ev match.Event
	ev.SetString(match.Path, "/login")
	for i := range 40_000 {
		now = now.Add(time.Millisecond)
		s.Add(now, key(fmt.Sprint("k", i)), &ratelimit.Decision{Rule: "a"}, nil)
		if i%100 == 0 {
			s.Add(now, key("often"), &ratelimit.Decision{Rule: "a", Limit: 7}, &ev)
		}
	}
	n := 0
	var often refused.Record
	evicted := s.Each(func(x *refused.Record) {
		n++
		if string(x.Key()) == string(key("often")) {
			often = *x
		}
	})
	if _, _, path := often.Texts(); often.Count != 400 || path != "/login" || often.Decision.Limit != 7 || n > 16_384 || evicted == 0 {
		t.Errorf("%d refusals of %q, limit %d; %d keys, evicted %d", often.Count, path, often.Decision.Limit, n, evicted)
	}
	none := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}))(t)
	if _, _, ok := refused.Split(none, key("often")); ok {
		t.Error("a key of a rule that is gone is split")
	}
}
