package follow

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// A log of names is reported once, a log with an address among them is not.
func TestClientsWithoutAddresses(t *testing.T) {
	for address, want := range map[string]int{"web": 1, "192.0.2.1": 0, "2001:db8::1": 0} {
		var text bytes.Buffer
		path := filepath.Join(t.TempDir(), "log")
		r := newReader(t, Config{Log: slog.New(slog.NewTextHandler(&text, nil))}, path)
		r.want()
		names := []string{address}
		for i := range 2 * manyClients {
			names = append(names, fmt.Sprintf("name%d", i))
		}
		for range 2 {
			write(t, path, append([]string(nil), names...)...)
			r.want(names...)
		}
		if got := strings.Count(text.String(), "no client in the log is an address"); got != want {
			t.Errorf("with %s: %d reports, want %d:\n%s", address, got, want, text.String())
		}
	}
}
