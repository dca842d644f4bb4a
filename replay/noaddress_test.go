package replay_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
)

// A report has a warning if no busy client is an address, and only then.
func TestNoClientIsAnAddress(t *testing.T) {
	for client, want := range map[string]bool{"web": true, "192.0.2.1": false, "2001:db8::1": false} {
		log := client + ` - - [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 1` + "\n"
		r := mustRun(t, replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log), Format: "clf", Key: "client", Top: 3})
		var text strings.Builder
		must.Do(t, r.WriteText(&text, replay.TextStyle{}))
		if got := strings.Contains(text.String(), "none of these clients is an address"); got != want {
			t.Errorf("%s: %v, want %v:\n%s", client, got, want, text.String())
		}
	}
}
