package latelyredis_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func hashedSet(t testing.TB) *ratelimit.Set {
	t.Helper()
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: []match.Source{{Field: "api_key", Header: "X-API-Key", Hash: true}}},
		ratelimit.Rule{Name: "keys", Key: match.MustKey("api_key"), Limits: []ratelimit.Limit{{N: 3, Span: time.Hour}}}))(t)
	return s
}

// TestHashKeyIsShared has two limiters over one Redis count an API key together, without a HashKey of theirs: also one that gets
// the hashed field by an Update. Another HashKey counts it apart.
func TestHashKeyIsShared(t *testing.T) {
	client, c := redis(t).client(t), prefixed()
	var limiters []*ratelimit.Limiter
	program := func(s *ratelimit.Set, key [32]byte) *latelyhttp.Middleware {
		l := limiterOf(t, s, newStore(t, client, s, c))
		m, err := latelyhttp.New(l, latelyhttp.Config{HashKey: key})
		limiters = append(limiters, l)
		must.Do(t, err)
		return m
	}
	ask := func(m *latelyhttp.Middleware) int {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", "k-S3CRET")
		m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w.Code
	}
	plain := set(t, ratelimit.Rule{Name: "clients", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 3, Span: time.Hour}}})
	first, second, updated := program(hashedSet(t), [32]byte{}), program(hashedSet(t), [32]byte{}), program(plain, [32]byte{})
	must.Do(t, limiters[2].Update(hashedSet(t)))
	for i, m := range []*latelyhttp.Middleware{first, second, updated} {
		if code := ask(m); code != 200 {
			t.Errorf("request %d: %d", i, code)
		}
	}
	for _, m := range []*latelyhttp.Middleware{first, second, updated} {
		if code := ask(m); code != 429 {
			t.Errorf("the fourth request of the key: %d; want 429", code)
		}
	}
	if code := ask(program(hashedSet(t), [32]byte{1})); code != 200 { // the control
		t.Errorf("with another key: %d", code)
	}
	for name := range strings.FieldsSeq(do(t, client, "KEYS", c.Prefix+"*")) {
		if strings.Contains(name, "S3CRET") {
			t.Errorf("Redis has %s", name)
		}
	}
	// It is that of servers of Lately.
	found := must.Get(secret.Parse(do(t, client, "GET", c.Prefix+"{nodes}:secret")))(t)
	of := secret.New()
	of.Set(found)
	if got, err := newStore(t, client, plain, c).HashKey(t.Context()); err != nil || got != *of.Key("field") {
		t.Errorf("HashKey returns another key: %v", err)
	}
}

// TestHashKeyWithoutStore has New and Check return an error if hashed fields have no key, and not otherwise.
func TestHashKeyWithoutStore(t *testing.T) {
	client, c := redis(t).client(t), prefixed()
	do(t, client, "SET", c.Prefix+"{nodes}:secret", "damaged")
	s := hashedSet(t)
	l := defaultLimiter(t, s, newStore(t, client, s, c))
	if _, err := latelyhttp.New(l, latelyhttp.Config{}); err == nil || !strings.Contains(err.Error(), "{nodes}:secret: not a secret") {
		t.Errorf("with a damaged secret: %v", err)
	}
	if _, err := latelyhttp.New(l, latelyhttp.Config{HashKey: [32]byte{1}}); err != nil {
		t.Errorf("with a key of its own: %v", err)
	}
	plain := set(t, ratelimit.Rule{Name: "clients", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 3, Span: time.Hour}}})
	m, err := latelyhttp.New(defaultLimiter(t, plain, newStore(t, client, plain, c)), latelyhttp.Config{})
	if err != nil {
		t.Errorf("without hashed fields: %v", err)
	} else if m.Check(s) == nil {
		t.Error("Check accepts hashed fields without a key")
	}
}
