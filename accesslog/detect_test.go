package accesslog_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
)

// sampleOf returns a log of the format with that share of other lines, first.
func sampleOf(format string, dirty int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for _, line := range exampleHeader(format) {
		b.WriteString(line + "\n")
	}
	for i := range 40 {
		if i < dirty {
			fmt.Fprintf(&b, "\x16\x03 dirty line %d\r\n", i)
			continue
		}
		b.WriteString(exampleLine(format, i, i, rng) + "\n")
	}
	return b.String()
}

func TestDetect(t *testing.T) {
	for _, name := range accesslog.Formats() {
		for _, dirty := range []int{0, 20, 36} {
			if f, ok := accesslog.Detect([]byte(sampleOf(name, dirty))); !ok || strings.TrimSuffix(f.String(), ":clf") != name {
				t.Errorf("%s with %d dirty lines of 40: detected %q, %v", name, dirty, f, ok)
			}
		}
		if f, ok := accesslog.Detect([]byte(sampleOf(name, 39))); ok {
			t.Errorf("%s with 39 dirty lines of 40: detected %q", name, f)
		}
	}
}

func TestDetectPlaces(t *testing.T) {
	line := clfStart + `"GET / HTTP/1.1" 200 1`
	for _, tt := range []struct{ name, sample, want string }{
		{"empty", "", ""},
		{"empty lines", "\n\r\n\n", ""},
		{"one line without an end", line, "clf"},
		{"one line cut off", line[:40], ""},
		{"a cut line behind a good one", line + "\n" + line[:40], "clf"},
		{"empty lines do not count", strings.Repeat("\n", 100) + line + "\n", "clf"},
		{"CRLF", line + "\r\n" + line + "\r\n", "clf"},
		{"CRLF and quotes", `"` + line + "\"\r\n", "clf-quoted"},
		{"leading blanks", "  " + line + "\n", "clf"},
		{"mostly quoted", strings.Repeat(`"`+line+"\"\n", 6) + strings.Repeat(line+"\n", 4), "clf-quoted"},
		{"mostly plain", strings.Repeat(`"`+line+"\"\n", 4) + strings.Repeat(line+"\n", 6), "clf"},
		{"sshd without an event", "May  8 00:02:30 gate sshd[1]: Server listening on :: port 22.\nMay  8 00:02:31 gate cron[7]: x\n", "messages"},
		{"the kernel without an event", "May  8 00:02:30 gate kernel: [UFW BLOCK] PROTO=2\n", ""},
		{"another syslog", "May  8 00:02:30 gate cron[7]: x\n", ""},
		{"words where a client is", strings.ReplaceAll(strings.Repeat(line+"\n", 3), "192.0.2.1", "web"), ""},
		{"a month where a client is", strings.ReplaceAll(strings.Repeat(line+"\n", 3), "192.0.2.1", "Nov"), ""},
		{"the priority of syslog where a client is", strings.ReplaceAll(strings.Repeat(line+"\n", 3), "192.0.2.1", "<190>Nov"), ""},
		{"only names of hosts", strings.ReplaceAll(strings.Repeat(line+"\n", 3), "192.0.2.1", "www.example.org"), ""},
		{"names of hosts and an address", strings.ReplaceAll(strings.Repeat(line+"\n", 3), "192.0.2.1", "www.example.org") + line + "\n", "clf"},
		{"no client", strings.ReplaceAll(strings.Repeat(line+"\n", 3), "192.0.2.1", "-"), "clf"},
		{"many words with a date and a time", "2018-04-17 06:25:06 " + strings.Repeat("word ", 20) + "\n", ""},
		{"other JSON", `{"ts":1521911720.5,"id.orig_h":"203.0.113.5"}` + "\n", "text"},
		{"other JSON without an address", `{"ts":1521911720.5,"id.orig_h":"web"}` + "\n", ""},
		{"a text without a client", "2018-04-17 06:25:06 shop.auth: listening on 203.0.113.5:80\n", ""},
		{"a text with several addresses", "2018-04-17 06:25:06 shop.auth: 203.0.113.5, 203.0.113.6\n", ""},
		{"dates of either order", "04/05/2018 06:25:06 login from 203.0.113.5\n", "text"},
		{"dates with the day first", "04/05/2018 06:25:06 login from 203.0.113.5\n13/05/2018 06:25:06 login from 203.0.113.5\n", "text-dmy"},
		{"dates with the month first", "04-05-2018 06:25:06 login from 203.0.113.5\n04-13-2018 06:25:06 login from 203.0.113.5\n", "text-mdy"},
		{"pairs and objects", "time=2018-04-17T06:25:06Z ip=203.0.113.5\n" + `{"time":"2018-04-17T06:25:06Z","ip":"203.0.113.5"}` + "\n", "logfmt"},
		{"text in the journal", `{"__REALTIME_TIMESTAMP":"1523946306250000","SYSLOG_IDENTIFIER":"shop","MESSAGE":"login refused, client 203.0.113.5"}` + "\n", "journald-json:text"},
		{"CSV", "version,time,op\n1,5633898,2a\n", ""},
		{"behind what is looked at", strings.Repeat("x\n", 128<<10) + strings.Repeat(line+"\n", 100_000), ""},
	} {
		f, ok := accesslog.Detect([]byte(tt.sample))
		if f.String() != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: detected %q, %v, want %q", tt.name, f, ok, tt.want)
		}
	}
}

func ExampleDetect() {
	sample := []byte(`192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 30 "-" "Wren/2.1"` + "\n")
	f, ok := accesslog.Detect(sample)
	fmt.Println(f, ok)
	// Output: clf true
}
