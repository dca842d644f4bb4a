package accesslog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// exampleOf returns the lines of the example of a named format.
func exampleOf(name string) []string {
	for _, n := range accesslog.NamedFormats() {
		if n.Name == name {
			return strings.Split(n.Example, "\n")
		}
	}
	panic("no format " + name)
}

// exampleHeader returns the lines of the example without events.
func exampleHeader(name string) []string {
	lines := exampleOf(name)
	return lines[:len(lines)-1]
}

// exampleLine returns the line of the example with another client, time and object.
func exampleLine(name string, i, second int, rng *rand.Rand) string {
	lines := exampleOf(name)
	clock := fmt.Sprintf("06:%02d:%02d", second/60%60, second%60)
	return strings.NewReplacer(
		"192.0.2.1", fmt.Sprintf("192.0.2.%d", i%256),
		"06:25:06", clock, "152394630", fmt.Sprintf("15239%05d", second)[:9],
		"/cart", fmt.Sprintf("/cart/%d", rng.IntN(900)),
	).Replace(lines[len(lines)-1])
}

// wrapping are the formats whose lines hold lines of a format that the name leaves open.
const wrapping = "docker-json syslog compose kubectl stern grep"

// Each format reads its own example, and has all fields that it documents, with these values.
func TestExamples(t *testing.T) {
	want := map[string]string{
		"client": "192.0.2.1", "user": "ada", "method": "GET", "path": "/cart", "object": "/cart", "query": "item=7",
		"status": "200", "size": "512", "referer": "https://shop.example/", "agent": "Wren/2.1", "host": "shop.example", "duration": "0.042",
	}
	others := map[string]map[string]string{
		"caddy":         {"duration": "0.0042"},
		"elb":           {"duration": "0.041"},
		"alb":           {"duration": "0.041"},
		"s3":            {"host": "shop-pictures.s3.eu-west-1.amazonaws.com", "path": "/cart.png", "object": "/cart.png"},
		"json-zeek-dns": {"object": "shop.example"},
		"messages":      {"user": "admin"},
		"journald-json": {"user": "admin"},
	}
	for _, n := range accesslog.NamedFormats() {
		name := n.Name
		if slices.Contains(strings.Fields(wrapping), name) {
			name += ":clf"
		}
		p := newParser(t, name, accesslog.Options{Year: 2018})
		lines := exampleOf(n.Name)
		var ev match.Event
		for i, line := range lines {
			if got, last := p.Parse([]byte(line), &ev), i == len(lines)-1; got != last || !last && !p.Skipped() {
				t.Errorf("%s: line %d: an event: %v, skipped: %v", n.Name, i, got, p.Skipped())
			}
		}
		if got := ev.Time.Format("2006-01-02T15:04:05"); got != "2018-04-17T06:25:06" {
			t.Errorf("%s: the time is %s", n.Name, got)
		}
		for _, field := range eventfield.Names(&ev) {
			value := want[field]
			if other, ok := others[n.Name][field]; ok {
				value = other
			}
			if got := string(ev.GetNamed(field)); value != "" && got != value {
				t.Errorf("%s: %s is %q, want %q", n.Name, field, got, value)
			}
			if !slices.Contains(n.Fields, field) {
				t.Errorf("%s: the event has %s, which is not among the fields %v", n.Name, field, n.Fields)
			}
		}
		for _, alias := range n.Aliases {
			if f, err := accesslog.ParseFormat(alias); err != nil || f.String() != n.Name {
				t.Errorf("alias %s of %s is %q: %v", alias, n.Name, f, err)
			}
		}
		if n.About == "" {
			t.Errorf("%s: no text describes it", n.Name)
		}
	}
}

// BenchmarkNamed reads the example lines of all named formats, a line an operation.
func BenchmarkNamed(b *testing.B) {
	for _, n := range accesslog.NamedFormats() {
		b.Run(n.Name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			lines := make([][]byte, 1000)
			size := 0
			for i := range lines {
				lines[i] = []byte(exampleLine(n.Name, i, i/5, rng))
				size += len(lines[i])
			}
			name := n.Name
			if slices.Contains(strings.Fields(wrapping), name) {
				name += ":clf"
			}
			p := newParser(b, name, accesslog.Options{})
			var ev match.Event
			for _, line := range exampleHeader(n.Name) {
				p.Parse([]byte(line), &ev)
			}
			readLines(b, p, lines, int64(size/len(lines)))
		})
	}
}
