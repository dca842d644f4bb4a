package latelyredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/lately-go/lately/latelyredis"
)

// TestAskedTime has Redis away: the time of a request is that of the caller, who decides instead.
func TestAskedTime(t *testing.T) {
	s := own(t)
	rules := anyRules(t)
	store, err := latelyredis.NewQuiet(s.client(t), rules, prefixed())
	if err != nil {
		t.Fatal(err)
	}
	s.Process().Kill()
	const asked = 12345
	r := &latelyredis.Request{Set: rules, Now: asked, Cost: 1, Subjects: []latelyredis.Subject{about(0, "k")}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if store.Decide(ctx, []*latelyredis.Request{r}); r.Err == nil || r.Now != asked {
		t.Errorf("%v at %d, want an error, and the time that was asked for, %d", r.Err, r.Now, asked)
	}
}
