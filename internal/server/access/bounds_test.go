package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

func TestBounds(t *testing.T) {
	for _, x := range []struct{ b, want access.Bounds }{
		{access.Bounds{}, access.Bounds{MaxConnections: 10_000, PeerConnections: 5_000, MaxSubscribers: 2048, Drain: 10 * time.Second}},
		{access.Bounds{MaxConnections: 1}, access.Bounds{MaxConnections: 1, PeerConnections: 1, MaxSubscribers: 2048, Drain: 10 * time.Second}},
		{
			access.Bounds{MaxConnections: 7, PeerConnections: 6, MaxSubscribers: 5, Drain: 1},
			access.Bounds{MaxConnections: 7, PeerConnections: 6, MaxSubscribers: 5, Drain: 1},
		},
	} {
		got, err := x.b.WithDefaults()
		if err != nil || got != x.want {
			t.Errorf("%+v is %+v, %v; want %+v", x.b, got, err, x.want)
		}
		if again, err := got.WithDefaults(); err != nil || again != got {
			t.Errorf("a second time it is %+v, %v", again, err)
		}
	}
}

func TestBoundsRefuse(t *testing.T) {
	for _, x := range []struct {
		b    access.Bounds
		want string
	}{
		{access.Bounds{MaxConnections: -1}, "MaxConnections is -1; allowed is 0"},
		{access.Bounds{PeerConnections: -2}, "PeerConnections is -2; allowed is 0"},
		{access.Bounds{MaxSubscribers: -3}, "MaxSubscribers is -3; allowed is 0"},
		{access.Bounds{Drain: -1}, "Drain is -1ns; allowed is 0"},
	} {
		if _, err := x.b.WithDefaults(); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%+v: %v; want %s", x.b, err, x.want)
		}
	}
}

func ExampleBounds() {
	b, err := access.Bounds{MaxConnections: 100}.WithDefaults()
	fmt.Println(b.PeerConnections, b.MaxSubscribers, b.Drain, err)
	_, err = access.Bounds{Drain: -time.Second}.WithDefaults()
	fmt.Println(err)
	// Output:
	// 50 2048 10s <nil>
	// Drain is -1s; allowed is 0 (10s) or more
}
