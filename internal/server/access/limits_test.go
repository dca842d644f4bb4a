package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

func TestBounds(t *testing.T) {
	for _, x := range []struct{ b, want access.Limits }{
		{access.Limits{}, access.Limits{MaxConnections: 10_000, PeerConnections: 5_000, MaxSubscribers: 2048, ShutdownTimeout: 10 * time.Second}},
		{access.Limits{MaxConnections: 1}, access.Limits{MaxConnections: 1, PeerConnections: 1, MaxSubscribers: 2048, ShutdownTimeout: 10 * time.Second}},
		{
			access.Limits{MaxConnections: 7, PeerConnections: 6, MaxSubscribers: 5, ShutdownTimeout: 1},
			access.Limits{MaxConnections: 7, PeerConnections: 6, MaxSubscribers: 5, ShutdownTimeout: 1},
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
		b    access.Limits
		want string
	}{
		{access.Limits{MaxConnections: -1}, "MaxConnections: -1: must be 0"},
		{access.Limits{PeerConnections: -2}, "PeerConnections: -2: must be 0"},
		{access.Limits{MaxSubscribers: -3}, "MaxSubscribers: -3: must be 0"},
		{access.Limits{ShutdownTimeout: -1}, "ShutdownTimeout: -1ns: must be 0"},
	} {
		if _, err := x.b.WithDefaults(); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%+v: %v; want %s", x.b, err, x.want)
		}
	}
}

func ExampleLimits() {
	b, err := access.Limits{MaxConnections: 100}.WithDefaults()
	fmt.Println(b.PeerConnections, b.MaxSubscribers, b.ShutdownTimeout, err)
	_, err = access.Limits{ShutdownTimeout: -time.Second}.WithDefaults()
	fmt.Println(err)
	// Output:
	// 50 2048 10s <nil>
	// ShutdownTimeout: -1s: must be 0 (10s) or more
}
