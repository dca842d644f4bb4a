package spelling_test

import (
	"testing"

	"github.com/lately-go/lately/internal/rule/spelling"
)

var fields = []string{"client", "object", "method", "path", "query", "protocol", "status", "size", "user", "host", "referer", "agent"}

// TestNearest has names with typing errors, and names that are only short or other
// words: for these a suggestion would mislead.
func TestNearest(t *testing.T) {
	for _, c := range []struct {
		name string
		most int
		want string
	}{
		{"cleint", 2, "client"},
		{"cleint", 1, "client"}, // a swap is one error
		{"CLIENT", 2, "client"},
		{"clients", 2, "client"},
		{"clent", 2, "client"},
		{"clixxt", 2, "client"},
		{"clixxt", 1, ""},
		{"pth", 2, "path"},
		{"paht", 2, "path"},
		{"statsu", 2, "status"},
		{"refferrer", 2, "referer"},
		{"session", 2, ""},
		{"a", 2, ""},
		{"", 2, ""},
		{"xx", 5, ""},
		{"site", 1, "size"},
		{"client", 2, "client"},
		{"cl\xffent", 2, ""}, // an invalid byte is replaced, which is several errors,
	} {
		if got := spelling.Nearest(c.name, fields, c.most); got != c.want {
			t.Errorf("Word(%q, %d) = %q, want %q", c.name, c.most, got, c.want)
		}
	}
	if got := spelling.Nearest("tss", []string{"ip", "ts"}, 2); got != "ts" {
		t.Errorf("for a short word with a letter more %q", got)
	}
	if got := spelling.Nearest("bar", []string{"bat", "car", "bar1"}, 2); got != "bat" {
		t.Errorf("of equally near words %q, want the first", got)
	}
}
