package accesslog

import (
	"testing"

	"github.com/lately-go/lately/match"
)

// Text chosen by a client is never taken for its address: the text around it decides.
func TestPatternValues(t *testing.T) {
	for _, tt := range []struct{ pattern, text, client, user string }{
		{"a $user from $client port $word", "a x from 192.0.2.1 port 1", "192.0.2.1", "x"},
		{"a $user from $client port $word", "a x from 192.0.2.9 port 2 from 192.0.2.1 port 1", "192.0.2.1", "x from 192.0.2.9 port 2"},
		{"a $user from $client port $word", "a x from 192.0.2.1 port 1 2", "", ""},
		{"a $user from $client port $word", "a x from 192.0.2.1 port", "", ""},
		{"a $user from $client port $word", "a from 192.0.2.1 port 1", "", ""},
		{"a $user $client port $word", "a x 192.0.2.9 port 1 192.0.2.1 port 1", "192.0.2.1", "x 192.0.2.9 port 1"},
		{"a $user $client port $word", "a  192.0.2.1 port 1", "192.0.2.1", ""},
		{"a $user from $client: $any", "a x from 192.0.2.1: y", "192.0.2.1", "x"},
		{"a $user from $client: $any", "a x from 192.0.2.9: y from 192.0.2.1: z", "192.0.2.1", "x from 192.0.2.9: y"},
		{"a $any, client: $client, $any", "a x, client: 192.0.2.1, y", "192.0.2.1", ""},
		{"a $any, client: $client, $any", "a x, client: 192.0.2.9, y, client: 192.0.2.1, y", "", ""},
		{"a $message, client: $client, of $context", "a x, client: 192.0.2.9, y, client: 192.0.2.1, of b, y", "192.0.2.1", ""},
		{"a $message, client: $client, of $context", "a x, client: 192.0.2.1, of b, client: 192.0.2.9, of c y", "192.0.2.1", ""},
		{"a $message, client: $client, of $context", "a x, client: 192.0.2.1, of b, client: 192.0.2.9, of c", "", ""},
		{"a $message! client: $client, of $context", "a x, client: 192.0.2.1, of b, y! client: 192.0.2.9, of c y", "", ""},
		{"a $text, client: $client, $any", "a x, client: 192.0.2.1, y, client: 192.0.2.9, y", "192.0.2.1", ""},
		{"a $client", "a 192.0.2.1", "192.0.2.1", ""},
		{"a $client", "a 192.0.2.1:4711", "192.0.2.1", ""},
		{"a $client", "a [2001:db8::1]:4711", "2001:db8::1", ""},
		{"a $client", "a host.example", "host.example", ""},
		{"a $client", "a host", "", ""},
		{"a $client", "a 192.0.2.1 ", "", ""},
		{"a $client", "a ", "", ""},
		{"$user $client failed", "x y 192.0.2.1 failed", "192.0.2.1", "x y"},
		{"$name $client failed", "x 192.0.2.1 failed", "192.0.2.1", "x"},
		{"$name $client failed", "x y 192.0.2.1 failed", "", ""},
	} {
		var ev match.Event
		compilePattern(tt.pattern).set([]byte(tt.text), &ev)
		if client, user := string(ev.Get(match.Client)), string(ev.Get(match.User)); client != tt.client || user != tt.user {
			t.Errorf("%q of %q: client %q and user %q, want %q and %q", tt.pattern, tt.text, client, user, tt.client, tt.user)
		}
	}
}

func TestAlternatives(t *testing.T) {
	for form, want := range map[string]int{"a": 1, "a{b|c}": 2, "a{|b}c{d|e|}": 6, `{"a":1}`: 1, `{"a":{b|c}`: 2, "a}": 1, "{": 1} {
		if got := alternatives(form); len(got) != want {
			t.Errorf("%q has the alternatives %q, want %d", form, got, want)
		}
	}
}

// Mistakes in the table are found when it is compiled.
func TestTableMistakes(t *testing.T) {
	for _, text := range []string{"a\n\tlogin failed\n", "a\n\tr\tx\n", "a\n\tr\t$ip\n", "a\n\tr\t$client$any\n"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is compiled", text)
				}
			}()
			compileMessages(text)
		}()
	}
}
