package hashedplans_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/rule/hashedplans"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// plain is plans whose keys are not hashed.
type plain struct{}

func (plain) N([]byte) (uint64, bool) { return 0, false }

// hashed is plans whose digests are under a key.
type hashed struct {
	plain
	key [32]byte
	err error
}

func (h *hashed) Rekey(key [32]byte) (func(), error) { return func() { h.key = key }, h.err }

func set(t *testing.T, plans ...interface{ N([]byte) (uint64, bool) }) *ratelimit.Set {
	t.Helper()
	rules := []ratelimit.Rule{{Name: "fixed", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 1, Span: time.Second}}}}
	for i, p := range plans {
		rules = append(rules, ratelimit.Rule{
			Name: fmt.Sprint("r", i), Key: match.MustKey("client"), LimitBy: &ratelimit.LimitBy{Field: "token", Plans: p},
			Limits: []ratelimit.Limit{{N: 1, Span: time.Second, AtMost: 9}},
		})
	}
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rules...))(t)
	return s
}

// TestRekey makes digests of all hashed plans under a key, which are in force after use.
func TestRekey(t *testing.T) {
	a, b, key := new(hashed), new(hashed), [32]byte{1}
	use, err := hashedplans.Rekey(set(t, a, plain{}, nil, b), key)
	if err != nil || a.key != [32]byte{} || b.key != [32]byte{} {
		t.Fatalf("%v, and keys %v and %v before use", err, a.key, b.key)
	}
	if use(); a.key != key || b.key != key {
		t.Errorf("keys %v and %v after use", a.key, b.key)
	}
}

// TestRekeyFails has the second of two plans fail: the error names its rule, and nothing must be used.
func TestRekeyFails(t *testing.T) {
	cause := errors.New("no such file")
	use, err := hashedplans.Rekey(set(t, new(hashed), &hashed{err: cause}), [32]byte{1})
	if use != nil || !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), `rule "r1": plans: `) {
		t.Errorf("%v", err)
	}
}
