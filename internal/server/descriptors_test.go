package server

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/follow"
)

// Connections leave descriptors to the files of the server, whatever the limit of open files is.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for _, tt := range []struct {
		limit      uint64
		resp, http string
		logs       int
		want, each int // connections of a listener, and of an address; 0 is an error
	}{
		{0, "a", "b", 0, 10_000, 5000},
		{1 << 20, "a", "b", 0, 10_000, 5000},
		{1 << 63, "a", "b", 0, 10_000, 5000},
		{20_128, "a", "b", 0, 10_000, 5000},
		{20_127, "a", "b", 0, 9999, 5000},
		{1024, "a", "b", 0, 448, 448},
		{1024, "a", Off, 0, 896, 896},
		{1024, "a", "b", 4, 384, 384},
		{130, "a", "b", 0, 1, 1},
		{129, "a", "b", 0, 0, 0},
		{20, Off, Off, 1, 10_000, 5000},
	} {
		c := Config{RESP: tt.resp, HTTP: tt.http, Follow: make([]follow.Log, tt.logs), Limits: access.Limits{}.WithDefaults()}
		err := c.limitConnections(tt.limit)
		if tt.want == 0 {
			if err == nil || !strings.Contains(err.Error(), "open files: a limit of 129: must be more than 130") {
				t.Errorf("limit %d: %v", tt.limit, err)
			}
			continue
		}
		if err != nil || c.MaxConnections != tt.want || c.PeerConnections != tt.each {
			t.Errorf("limit %d: %d connections, %d of an address, %v; want %d, %d", tt.limit, c.MaxConnections, c.PeerConnections, err, tt.want, tt.each)
		}
	}
}
