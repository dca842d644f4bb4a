package keys_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/keys"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"bans", "bans", true},
		{"bans", "ban", false},
		{"ban", "bans", false},
		{"*", "", true},
		{"*", "bans:x", true},
		{"bans*", "bans", true},
		{"bans:*", "bans", false},
		{"b?ns", "bans", true},
		{"b?ns", "bns", false},
		{"b[ae]ns", "bens", true},
		{"b[^ae]ns", "bans", false},
		{"b[^ae]ns", "bins", true},
		{"b[a-c]ns", "bbns", true},
		{"b[c-a]ns", "bbns", true},
		{`b\*ns`, "b*ns", true},
		{`b\*ns`, "bans", false},
		{"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaa", false},
		{"**x", "aax", true},
		{"[", "[", false},
		{"[a", "a", true},
		{`\`, `\`, true},
		{"", "", true},
		{"", "a", false},
		{"a*", "a", true},
	} {
		if got := keys.Glob(c.pattern, []byte(c.name)); got != c.want {
			t.Errorf("Glob(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
	if _, err := keys.ParseFilter("", "192.0.2.0/33"); err == nil {
		t.Error("a network of 33 bits: no error")
	}
	began := time.Now()
	keys.Glob(strings.Repeat("*a", 120)+"b", []byte(strings.Repeat("a", 256)))
	if d := time.Since(began); d > time.Minute { // one that tries each split would take centuries
		t.Errorf("a hostile pattern took %v", d)
	}
}
