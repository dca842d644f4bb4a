package access_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

func TestBounds(t *testing.T) {
	for _, x := range []struct{ b, want access.Limits }{
		{access.Limits{}, access.Limits{MaxConnections: 10_000, PeerConnections: 5_000, MaxSubscribers: 2048, IdleTimeout: 5 * time.Minute, ShutdownTimeout: 10 * time.Second}},
		{access.Limits{MaxConnections: 1}, access.Limits{MaxConnections: 1, PeerConnections: 1, MaxSubscribers: 2048, IdleTimeout: 5 * time.Minute, ShutdownTimeout: 10 * time.Second}},
		{
			access.Limits{MaxConnections: 7, PeerConnections: 6, MaxSubscribers: 5, IdleTimeout: -1, ShutdownTimeout: 1},
			access.Limits{MaxConnections: 7, PeerConnections: 6, MaxSubscribers: 5, IdleTimeout: -1, ShutdownTimeout: 1},
		},
	} {
		got := x.b.WithDefaults()
		if got != x.want {
			t.Errorf("%+v is %+v; want %+v", x.b, got, x.want)
		}
		if again := got.WithDefaults(); again != got {
			t.Errorf("a second time it is %+v", again)
		}
	}
}

func ExampleLimits() {
	b := access.Limits{MaxConnections: 100}.WithDefaults()
	fmt.Println(b.PeerConnections, b.MaxSubscribers, b.ShutdownTimeout)
	// Output: 50 2048 10s
}
