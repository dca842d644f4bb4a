package client

import (
	"errors"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/listen"
)

// TestFleetReserves reserves, settles and charges at two nodes: each id is settled at the node of its key.
func TestFleetReserves(t *testing.T) {
	a, b := startServer(t, listen.Config{}), startServer(t, listen.Config{})
	f, err := NewFleet(FleetConfig{Nodes: []string{a.addr, b.addr}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx := t.Context()
	left := func(user string, want uint64) {
		t.Helper()
		if d, err := f.Peek(ctx, "login", want, user); err != nil || !d.Allowed || d.Remaining != 0 {
			t.Errorf("%s has not %d left: %+v, %v", user, want, d, err)
		}
	}
	for _, user := range []string{"ada", "bob", "eve", "kim", "max"} {
		r, err := f.Reserve(ctx, "login", 60, 0, user)
		if err != nil || !r.Decision.Allowed || r.Decision.Remaining != 40 || r.ID == "" {
			t.Fatalf("%+v, %v", r, err)
		}
		if refused, err := f.Reserve(ctx, "login", 60, time.Hour, user); err != nil || refused.Decision.Allowed || refused.ID != "" {
			t.Errorf("%+v, %v", refused, err)
		} else if _, err := f.Settle(ctx, refused, 1); err == nil {
			t.Error("a refused reservation is settled")
		}
		for i, cost := range []uint64{7, 0} {
			if settled, err := f.Settle(ctx, r, cost); err != nil || settled != (i == 0) {
				t.Errorf("settlement %d: %v, %v", i, settled, err)
			}
		}
		left(user, 93)
		if err := f.Charge(ctx, "login", 3, user); err != nil {
			t.Error(err)
		}
		left(user, 90)
	}
	_, err = f.Settle(ctx, Reservation{ID: "made-up"}, 1)
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Code != api.BadID {
		t.Errorf("a made-up id: %v", err)
	}
	short, err := f.Reserve(ctx, "login", 1, time.Nanosecond, "ada") // a millisecond
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond)
	_, err = f.Settle(ctx, short, 0)
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Code != api.Expired {
		t.Errorf("a late settlement: %v", err)
	}
}
