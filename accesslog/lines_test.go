package accesslog_test

import (
	"fmt"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

func ExampleCutLine() {
	log := []byte(`192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET /a?page=2 HTTP/1.1" 200 30 "-" "Wren/2.1"
not a line of this log
203.0.113.7 - - [17/Apr/2018:08:25:07 +0200] "POST /login HTTP/1.1" 403 12 "-" "Wren/2.1"
`)
	f, err := accesslog.ParseFormat("clf")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := f.NewParser(accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ev match.Event
	for line := []byte(nil); len(log) > 0; {
		line, log, _ = accesslog.CutLine(log)
		if !p.Parse(line, &ev) {
			fmt.Printf("bad: %s\n", line)
			continue
		}
		fmt.Printf("%s %s %s %s\n", ev.Time.Format("15:04:05"), ev.Get(match.Client), ev.Get(match.Method), ev.Get(match.Path))
	}
	// Output:
	// 06:25:06 192.0.2.1 GET /a
	// bad: not a line of this log
	// 06:25:07 203.0.113.7 POST /login
}

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
