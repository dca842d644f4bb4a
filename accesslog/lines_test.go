package accesslog_test

import (
	"testing"

	"github.com/lately-go/lately/accesslog"
)

func TestCutLine(t *testing.T) {
	for _, tt := range []struct {
		data, line, rest string
		ok               bool
	}{
		{"", "", "", false},
		{"a", "a", "", false},
		{"a\r", "a", "", false},
		{"a\n", "a", "", true},
		{"a\r\nb\n", "a", "b\n", true},
		{"a\r\r\nb", "a\r", "b", true},
		{"\n\n", "", "\n", true},
		{"\r\n", "", "", true},
		{"a\rb\nc", "a\rb", "c", true},
	} {
		line, rest, ok := accesslog.CutLine([]byte(tt.data))
		if string(line) != tt.line || string(rest) != tt.rest || ok != tt.ok {
			t.Errorf("CutLine(%q) = %q, %q, %v, want %q, %q, %v", tt.data, line, rest, ok, tt.line, tt.rest, tt.ok)
		}
	}
}
