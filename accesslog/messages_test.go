package accesslog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

var messageNames = append(match.FieldNames(), "program", "reason", "proto", "spt")

// login is an event of sshd.
func login(client, user, reason string) []string {
	return []string{"client=" + client, "user=" + user, "program=sshd", "reason=" + reason}
}

func TestSSHD(t *testing.T) {
	const start = "May  8 00:02:30 gate sshd[15788]: "
	checkTable(t, "messages", accesslog.Options{Year: 2022}, true, messageNames, []lineTest{
		{"password", start + "Failed password for root from 203.0.113.9 port 56798 ssh2", "2022-05-08T00:02:30Z", login("203.0.113.9", "root", "login failed")},
		{"invalid user", start + "Failed password for invalid user a b from 203.0.113.9 port 1", "", login("203.0.113.9", "a b", "login failed")},
		{"none", start + "Failed none for invalid user  from 2001:db8::1 port 1 ssh2", "", login("2001:db8::1", "", "login failed")},
		{"keyboard-interactive", start + "Failed keyboard-interactive/pam for invalid user x from 203.0.113.9 port 1 ssh2", "", login("203.0.113.9", "x", "PAM failure")},
		{"publickey", start + "Failed publickey for root from 203.0.113.9 port 1 ssh2: RSA SHA256:abc", "", login("203.0.113.9", "root", "key refused")},
		{"PAM", start + "error: PAM: Authentication failure for illegal user x from host.example", "", login("host.example", "x", "login failed")},
		{"an unknown user", start + "Invalid user x y from 203.0.113.9 port 4711", "", login("203.0.113.9", "x y", "unknown user")},
		{"closed", start + "Connection closed by authenticating user root 203.0.113.9 port 4711 [preauth]", "", login("203.0.113.9", "root", "connection closed")},
		{"closed, an invalid user with blanks", start + "Connection closed by invalid user a 192.0.2.7 port 9 203.0.113.9 port 4711 [preauth]", "", login("203.0.113.9", "a 192.0.2.7 port 9", "connection closed")},
		{"closed, an empty user", start + "Connection closed by invalid user  203.0.113.9 port 4711 [preauth]", "", login("203.0.113.9", "", "connection closed")},
		{"too many attempts", start + "error: maximum authentication attempts exceeded for invalid user x from 203.0.113.9 port 1 ssh2 [preauth]", "", login("203.0.113.9", "x", "too many failures")},
		{"not allowed", start + "User root from 203.0.113.9 not allowed because not listed in AllowUsers", "", login("203.0.113.9", "root", "not allowed")},
		{"auth fail", start + "Received disconnect from 203.0.113.9 port 4711:3: com.example.Exception: Auth fail [preauth]", "", []string{"client=203.0.113.9", "program=sshd", "reason=connection closed"}},
		{"session", "May  8 00:02:30 gate sshd-session[1]: Invalid user x from 203.0.113.9 port 1", "", login("203.0.113.9", "x", "unknown user")},
		{"a user cannot pass for a client", start + "Failed password for root from 192.0.2.1 port 7 ssh2 from 203.0.113.9 port 5 ssh2", "", login("203.0.113.9", "root from 192.0.2.1 port 7 ssh2", "login failed")},
		{"nor in another message", start + "User x from 192.0.2.1 not allowed because y from 203.0.113.9 not allowed because not listed in AllowUsers", "", login("203.0.113.9", "x from 192.0.2.1 not allowed because y", "not allowed")},
		{"no host", "May  8 00:02:30 sshd[1]: Invalid user x from 203.0.113.9", "", login("203.0.113.9", "x", "unknown user")},
		{"RFC 3339", "2026-05-08T00:02:30.25+02:00 gate sshd[1]: Invalid user x from 203.0.113.9 port 1", "2026-05-07T22:02:30.25Z", login("203.0.113.9", "x", "unknown user")},
		{"RFC 5424", `<38>1 2026-05-08T00:02:30Z gate sshd 812 - [a b="]\"" c="d"][e] Invalid user x from 203.0.113.9 port 1`, "2026-05-08T00:02:30Z", login("203.0.113.9", "x", "unknown user")},
		{"a priority", "<38>May  8 00:02:30 gate sshd[1]: Invalid user x from 203.0.113.9 port 1", "2022-05-08T00:02:30Z", login("203.0.113.9", "x", "unknown user")},
		{"accepted", start + "Accepted password for root from 203.0.113.9 port 1 ssh2", "", bad},
		{"a word for a client", start + "Failed password for u from c port 1", "", bad},
		{"another daemon", "May  8 00:02:30 gate sudo[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"no day", "May 32 00:02:30 gate sshd[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"no leap day", "Feb 29 00:02:30 gate sshd[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"no stamp", "gate sshd[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"stamp only", "May  8 00:02:30 ", "", bad},
		{"empty", "", "", bad},
	})
}

func TestPackets(t *testing.T) {
	const start = "May  8 00:00:52 gate kernel: [35266.781076] "
	packet := func(fields ...string) []string { return append(fields, "program=kernel", "reason=blocked") }
	checkTable(t, "messages", accesslog.Options{Year: 2022}, true, messageNames, []lineTest{
		{
			"UFW", start + "[UFW BLOCK] IN=e0 OUT= SRC=203.0.113.4 DST=192.0.2.84 LEN=52 PROTO=TCP SPT=31745 DPT=25 WINDOW=1 ", "2022-05-08T00:00:52Z",
			packet("client=203.0.113.4", "object=25", "proto=TCP", "spt=31745"),
		},
		{"a rule of iptables", start + "dropped: IN=e0 OUT= SRC=203.0.113.4 DST=192.0.2.84 PROTO=UDP SPT=7 DPT=53 LEN=9", "", packet("client=203.0.113.4", "object=53", "proto=UDP", "spt=7")},
		{"no ports", start + "[UFW BLOCK] IN=e0 SRC=203.0.113.4 DST=192.0.2.84 PROTO=2 ", "", packet("client=203.0.113.4", "proto=2")},
		{"a packet in an ICMP error", start + "[UFW BLOCK] IN=e0 SRC=203.0.113.4 PROTO=ICMP TYPE=3 [SRC=192.0.2.9 PROTO=UDP SPT=7 DPT=53 LEN=9 ] ", "", packet("client=203.0.113.4", "proto=ICMP")},
		{"allowed", start + "[UFW ALLOW] IN=e0 SRC=203.0.113.4 DST=x PROTO=TCP DPT=25 ", "", bad},
		{"no address", start + "[UFW BLOCK] IN=e0 SRC=a PROTO=TCP DPT=1 ", "", bad},
		{"no protocol", start + "[UFW BLOCK] IN=e0 SRC=203.0.113.4", "", bad},
		{"no time", "[UFW BLOCK] IN=e0 SRC=203.0.113.4 PROTO=TCP DPT=1 ", "", bad},
	})
}

// Each form of a time in front of the same message.
func TestMessageTimes(t *testing.T) {
	const text = "login authenticator failed for (x) [203.0.113.9]: 535 Incorrect authentication data"
	for stamp, want := range map[string]string{
		"2018-04-17 06:25:06":          "2018-04-17T06:25:06Z",
		"2018-04-17 06:25:06.25":       "2018-04-17T06:25:06.25Z",
		"2018-04-17 06:25:06,25":       "2018-04-17T06:25:06.25Z",
		"2018-04-17 06:25:06 +0200":    "2018-04-17T04:25:06Z",
		"2018-04-17 06:25:06.5 +02:00": "2018-04-17T04:25:06.5Z",
		"2018-04-17 06:25:06 UTC":      "2018-04-17T06:25:06Z",
		"2018-04-17T06:25:06Z":         "2018-04-17T06:25:06Z",
		"2018/04/17 06:25:06":          "2018-04-17T06:25:06Z",
		"2018.04.17 06:25:06":          "2018-04-17T06:25:06Z",
		"2018:04:17-06:25:06:":         "2018-04-17T06:25:06Z",
		"[2018-04-17 06:25:06]":        "2018-04-17T06:25:06Z",
		"17-Apr-2018 06:25:06.25":      "2018-04-17T06:25:06.25Z",
		"[17/Apr/2018:06:25:06 +0200]": "2018-04-17T04:25:06Z",
		"[17/Apr/2018 06:25:06]":       "2018-04-17T06:25:06Z",
		"[Tue Apr 17 06:25:06 2018]":   "2018-04-17T06:25:06Z",
		"[Tue Apr  7 06:25:06.5 2018]": "2018-04-07T06:25:06.5Z",
		"Tue Apr 17 06:25:06 2018":     "2018-04-17T06:25:06Z",
		"Apr 17 2018 06:25:06":         "2018-04-17T06:25:06Z",
		"1523946306":                   "2018-04-17T06:25:06Z",
		"1523946306.25":                "2018-04-17T06:25:06.25Z",
		"2018-04-31 06:25:06":          "",
		"2018-13-01 06:25:06":          "",
		"2018-04-17 25:25:06":          "",
		"2018-04-17":                   "",
		"[2018-04-17 06:25:06":         "",
		"17-Abc-2018 06:25:06":         "",
		"152394630":                    "",
		"Tue Apr 17 06:25:06 18":       "",
		"Tue Apr 32 06:25:06 2018":     "",
	} {
		var ev match.Event
		ok := newParser(t, "messages", accesslog.Options{}).Parse([]byte(stamp+" "+text), &ev)
		got := ""
		if ok {
			got = strings.Replace(ev.Time.Format("2006-01-02T15:04:05.999Z"), ".000", "", 1)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", stamp, got, want)
		}
	}
}

// A line that stands for several events gives so many.
func TestRepeatedMessages(t *testing.T) {
	const start, message = "May  8 00:02:30 gate sshd[15788]: ", "Failed password for root from 203.0.113.9 port 1 ssh2"
	for line, want := range map[string]int{
		start + message: 1,
		start + "message repeated 3 times: [ " + message + "]":                 3,
		start + "message repeated 100000 times: [ " + message + "]":            100_000,
		start + "message repeated 100001 times: [ " + message + "]":            0,
		start + "message repeated 0 times: [ " + message + "]":                 0,
		start + "message repeated times: [ " + message + "]":                   0,
		start + "message repeated 3 times: [ " + message:                       0,
		start + "message repeated 3 times: [ Accepted password for x]":         0,
		start + "message repeated 99999999999999999 times: [ " + message + "]": 0,
	} {
		p := newParser(t, "messages", accesslog.Options{Year: 2022})
		var ev match.Event
		n := 0
		if p.Parse([]byte(line), &ev) {
			for n++; p.Next(&ev); n++ {
				if got := string(ev.Get(match.Client)); got != "203.0.113.9" {
					t.Fatalf("%q: event %d has the client %q", line, n, got)
				}
			}
		}
		if n != want {
			t.Errorf("%q: %d events, want %d", line, n, want)
		}
		if p.Next(&ev) {
			t.Errorf("%q: an event after the last", line)
		}
	}
}

// A log may have times without a year, and after an upgrade times with one.
func TestMessagesOfBothKinds(t *testing.T) {
	p := newParser(t, "messages", accesslog.Options{})
	got := ""
	for _, stamp := range []string{"Dec 31 23:59:59", "2026-01-01T00:00:00+01:00", "Jan  1 00:00:01"} {
		var ev match.Event
		p.Parse([]byte(stamp+" gate sshd[1]: Invalid user x from 203.0.113.9"), &ev)
		got += fmt.Sprintf("%s %v %v\n", ev.Time.Format("2006-01-02 15:04"), p.Yearless(), p.Zoneless())
	}
	want := "1971-01-01 23:59 true true\n2025-12-31 23:00 false false\n1971-01-02 00:00 true true\n"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// FuzzMessages must find clients that are addresses or names in the line, and give the same
// event for a message under each head.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("May  8 00:02:30 gate sshd[1]: Failed password for invalid user a from b from 203.0.113.9 port 1 ssh2"))
	p := newParser(f, "messages", accesslog.Options{Year: 2016})
	f.Fuzz(func(t *testing.T, line []byte) {
		var ev match.Event
		if !p.Parse(line, &ev) {
			return
		}
		client := string(ev.Get(match.Client))
		if client == "" || strings.ContainsAny(client, " \t") || !strings.Contains(string(line), client) || !strings.Contains(string(line), string(ev.Get(match.User))) {
			t.Fatalf("client %q and user %q of %q", client, ev.Get(match.User), line)
		}
		_, text, ok := strings.Cut(string(line), " gate sshd[1]: ")
		if !ok || strings.HasPrefix(text, "message repeated") || strings.Contains(string(line[:len(line)-len(text)]), "sshd[1]: sshd") || !strings.HasPrefix(string(line), "May  8 00:02:30 gate ") {
			return
		}
		want := fmt.Sprint(eventsOf(p, string(line)))
		for _, head := range []string{"May  8 00:02:30 gate sshd[7]: ", "<1>May  8 00:02:30 sshd: ", "2016-05-08T00:02:30Z gate sshd-session[3]: ", "<1>1 2016-05-08T00:02:30Z gate sshd 7 - - "} {
			if got := fmt.Sprint(eventsOf(p, head+text)); got != want {
				t.Fatalf("%q: %s, want %s", head+text, got, want)
			}
		}
	})
}
