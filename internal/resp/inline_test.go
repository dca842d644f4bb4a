package resp_test

import (
	"slices"
	"strings"
	"testing"
)

// TestInlineCommands has the cases of Redis' own test of sdssplitargs and the
// edges around them.
func TestInlineCommands(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string // nil: refused
	}{
		{`Testing one two three`, []string{"Testing", "one", "two", "three"}},
		{`"Testing split strings" 'Another split string'`, []string{"Testing split strings", "Another split string"}},
		{`"Hello" `, []string{"Hello"}},
		{`  timeout 0  `, []string{"timeout", "0"}},
		{"\ttimeout\t0\t", []string{"timeout", "0"}},
		{`deploy_file "~/Docs/x.\x41" '\n'`, []string{"deploy_file", "~/Docs/x.A", `\n`}},
		{`a "\n\r\t\b\a\\\"\q\x4\xg0"`, []string{"a", "\n\r\t\b\a\\\"qx4xg0"}},
		{`a "\xfF\x00"`, []string{"a", "\xff\x00"}},
		{`a '\'' '\\ ' '"'`, []string{"a", "'", `\\ `, `"`}},
		{`'\\'`, nil},
		{`"" ''`, []string{"", ""}},
		{`a"b c"`, []string{"ab c"}},
		{`a'b c' d`, []string{"ab c", "d"}},
		{`a\ b`, []string{`a\`, "b"}},
		{`\x41`, []string{`\x41`}},
		{"a\vb \vc", []string{"a\vb", "c"}},
		{"\"a\"\vb", []string{"a", "b"}},
		{"a\r b", []string{"a", "b"}},
		{`é "é"`, []string{"é", "é"}},
		{`"a"b`, nil},
		{`"a""b"`, nil},
		{`'a'b`, nil},
		{`"a`, nil},
		{`a"`, nil},
		{`'a\'`, nil},
		{`"a\"`, nil},
		{`"a\`, nil},
		{`"\x4`, nil},
	} {
		r := newReader(t, strings.NewReader(c.line+"\r\nPING\r\n"))
		args, err := r.Next()
		var got []string
		for _, arg := range args {
			got = append(got, string(arg))
		}
		if c.want == nil {
			if err == nil || err.Error() != "Protocol error: unbalanced quotes in request" {
				t.Errorf("%q: got %q, %v, want a refusal", c.line, got, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, %v, want %q", c.line, got, err, c.want)
		}
		// Decoding in place has not touched what follows.
		if args, err = r.Next(); err != nil || string(args[0]) != "PING" {
			t.Errorf("behind %q: %q, %v", c.line, args, err)
		}
	}
}
