package apierror_test

import (
	"errors"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// TestErrors gives the errors of a limiter that clients cause a code and a sentence, and passes on others.
func TestErrors(t *testing.T) {
	file := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nlimits: [{name: login, key: user, limit: 2 per 1m}]")))(t)
	limiter := must.Get(ratelimit.NewLimiter(file.Limits, ratelimit.Config{}))(t)
	_, unknown := limiter.Rule("logim")
	_, badKey := must.Get(limiter.Rule("login"))(t).Refund(1, "ada", "eve")
	fixed := limiter.Internal().TakeAll([]batch.Query{{Rule: "login", Key: []string{"ada"}, Cost: 1, Limit: 3}}, nil)[0].Err
	other := errors.New("the disk is full")
	for _, x := range []struct {
		err  error
		want string
	}{
		{unknown, `NORULE unknown rule "logim": did you mean "login"?`},
		{badKey, "BADARG number of key values: 2: must be 1: user"},
		{fixed, `BADARG rule "login": its limit is fixed: must have at_most to take a limit from a request`},
		{other, "the disk is full"},
		{apierror.Unknown(api.NoRule, "hot rule", "x", nil), `NORULE hot rule "x": unknown: there are none`},
		{apierror.Unknown(api.BadArg, "counter", "x", []string{"a", "b"}), `BADARG counter "x": unknown: must be one of a, b`},
	} {
		if got := apierror.Of(x.err); got.Error() != x.want {
			t.Errorf("%v: %v, want %s", x.err, got, x.want)
		}
	}
	if err := apierror.Of(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}
