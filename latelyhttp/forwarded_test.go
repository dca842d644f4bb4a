package latelyhttp

import (
	"slices"
	"strings"
	"testing"
)

// nodes returns what the chain gives, from right to left.
func nodes(forwarded bool, lines ...string) []string {
	c := chain{lines: lines, forwarded: forwarded}
	var all []string
	for {
		node, more := c.previous()
		if !more {
			return all
		}
		all = append(all, node)
	}
}

func TestChainOfAddresses(t *testing.T) {
	for _, c := range []struct {
		lines, want []string
	}{
		{nil, nil},
		{[]string{"192.0.2.1"}, []string{"192.0.2.1"}},
		{[]string{"a, b,c"}, []string{"c", "b", "a"}},
		{[]string{"a, b", "c"}, []string{"c", "b", "a"}},
		{[]string{"a", "b, c"}, []string{"c", "b", "a"}},
		{[]string{" a ,\tb\t"}, []string{"b", "a"}},
		{[]string{""}, []string{""}},
		{[]string{"a", ""}, []string{"", "a"}},
		{[]string{"a,"}, []string{"", "a"}},
		{[]string{",a"}, []string{"a", ""}},
		{[]string{"a,,b"}, []string{"b", "", "a"}},
		{[]string{`a, "b, c"`}, []string{`c"`, `"b`, "a"}}, // quotes mean nothing here
	} {
		if got := nodes(false, c.lines...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q; want %q", c.lines, got, c.want)
		}
	}
}

func TestChainForwarded(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"for=192.0.2.1", []string{"192.0.2.1"}},
		{"For=192.0.2.1;proto=http;by=203.0.113.43", []string{"192.0.2.1"}},
		{"proto=http;for=192.0.2.1", []string{"192.0.2.1"}},
		{`for="[2001:db8:cafe::17]:4711"`, []string{"[2001:db8:cafe::17]:4711"}},
		{`for="_gazonk"`, []string{"_gazonk"}},
		{"for=192.0.2.43, for=198.51.100.17", []string{"198.51.100.17", "192.0.2.43"}},
		{`for=192.0.2.43,for="[2001:db8::1]",for=unknown`, []string{"unknown", "[2001:db8::1]", "192.0.2.43"}},
		{`host="a,b";for=192.0.2.1`, []string{"192.0.2.1"}},
		{`host="a\"b,c\\";for=192.0.2.1`, []string{"192.0.2.1"}},
		{`for=192.0.2.1;host="for=198.51.100.1;for=198.51.100.2"`, []string{"192.0.2.1"}},
		{"for=192.0.2.1;", []string{"192.0.2.1"}},
		{";;for=192.0.2.1;;proto=http", []string{"192.0.2.1"}},
		{"for = 192.0.2.1 ; proto = http", []string{"192.0.2.1"}},

		{"", []string{""}},
		{"for", []string{""}},
		{"for=", []string{""}},
		{`for=""`, []string{""}},
		{"proto=http", []string{""}},
		{"192.0.2.1", []string{""}},
		{"for=192.0.2.1;for=198.51.100.1", []string{""}},
		{"for=192.0.2.1;FOR=198.51.100.1", []string{""}},
		{"for=192.0.2.1;x", []string{""}},
		{"for=192.0.2.1;=x", []string{""}},
		{`for="192.0.2.1"x`, []string{""}},
		{`for="192.0.2.1" proto=http`, []string{""}},
		{`for=19"2.0.2.1`, []string{""}},

		// The client's text cannot swallow the address appended by a proxy.
		{`for="198.51.100.1, for=192.0.2.1`, []string{"192.0.2.1", ""}},
		{`for=x;y=", for="[2001:db8::1]"`, []string{"[2001:db8::1]", ""}},
		{`for="\, for=192.0.2.1`, []string{"192.0.2.1", ""}},
		{`for="a\", for="[2001:db8::1]";proto=http`, []string{"[2001:db8::1]", ""}},
		// Nor can a proxy that leaves a quote open be read as something else.
		{`for=198.51.100.1, for="192.0.2.1`, []string{""}},
		{`for=198.51.100.1, for=192.0.2.1"`, []string{""}},
	} {
		if got := nodes(true, c.line); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q; want %q", c.line, got, c.want)
		}
	}
}

// A long header takes no longer for each byte than a short one.
func TestChainIsLinear(t *testing.T) {
	const size = 1 << 18
	for _, unit := range []string{",", `"`, `\`, `\"`, `",`, `";`, "for=", ";"} {
		line := strings.Repeat(unit, size/len(unit))
		for _, forwarded := range []bool{false, true} {
			if n := len(nodes(forwarded, line)); n > size+1 {
				t.Errorf("%d elements in %d bytes of %q", n, size, unit)
			}
		}
	}
}
