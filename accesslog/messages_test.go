package accesslog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

var messageNames = append(eventfield.WellKnown(), "program", "reason", "proto", "spt")

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
		"[Apr 17 06:25:06]":            "2018-04-17T06:25:06Z",
		"20180417-06:25:06":            "2018-04-17T06:25:06Z",
		"2018-04-17T06:25:06Z,":        "2018-04-17T06:25:06Z",
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
		ok := newParser(t, "messages", accesslog.Options{Year: 2018}).Parse([]byte(stamp+" "+text), &ev)
		got := ""
		if ok {
			got = strings.Replace(ev.Time.Format("2006-01-02T15:04:05.999Z"), ".000", "", 1)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", stamp, got, want)
		}
	}
}

// Messages of other programs: each is from its client, whatever the client chose.
func TestServers(t *testing.T) {
	for line, want := range map[string]string{
		"Apr 17 06:25:06 mx postfix/smtpd[7]: NOQUEUE: reject: RCPT from a.example[192.0.2.1]: 554 5.7.1 <x[192.0.2.9]>: Relay access denied; helo=<b[192.0.2.9]:>":                                                          "192.0.2.1 postfix rejected",
		"Apr 17 06:25:06 mx postfix/smtps/smtpd[7]: warning: unknown[192.0.2.1]: SASL LOGIN authentication failed: x":                                                                                                        "192.0.2.1 postfix login failed",
		"Apr 17 06:25:06 mx dovecot: imap-login: Disconnected (auth failed, 1 attempts in 6 secs): user=<a>, method=PLAIN, rip=192.0.2.1, lip=198.51.100.1, TLS":                                                             "192.0.2.1 dovecot login failed",
		"Apr 17 06:25:06 mx dovecot: imap-login: Disconnected (auth failed, 1 attempts): user=<a, rip=192.0.2.9, >, method=PLAIN, rip=192.0.2.1, lip=198.51.100.1":                                                           "",
		"Apr 17 06:25:06 mx dovecot: auth-worker(7): pam(a,192.0.2.9): unknown user,192.0.2.1): unknown user":                                                                                                                "192.0.2.1 dovecot login failed",
		"Apr 17 06:25:06 mx sm-mta[7]: w3H6P6aa: from=<a@b, c@d>, size=0, class=0, nrcpts=0, proto=ESMTP, daemon=MTA, relay=c.example [192.0.2.1]":                                                                           "192.0.2.1 sendmail connection closed",
		"Apr 17 06:25:06 mx sm-mta[7]: w3H6P6aa: from=<a, nrcpts=0, relay=[192.0.2.9]>, size=0, class=0, nrcpts=0, proto=ESMTP, relay=[192.0.2.1]":                                                                           "",
		"Apr 17 06:25:06 gate dropbear[7]: Exit before auth (user 'a, b', 3 fails): Max auth tries reached - user 'a, b' from 192.0.2.1:4711":                                                                                "192.0.2.1 dropbear too many failures",
		"Apr 17 06:25:06 mx vsftpd: pam_unix(vsftpd:auth): authentication failure; logname= uid=0 euid=0 tty=ftp ruser=a rhost=192.0.2.1  user=b":                                                                            "192.0.2.1 vsftpd PAM failure",
		"Apr 17 06:25:06 mx vsftpd: pam_unix(vsftpd:auth): authentication failure; logname= uid=0 euid=0 tty=ftp ruser= rhost=192.0.2.1  user=b rhost=192.0.2.9":                                                             "",
		`Tue Apr 17 06:25:06 2018 [pid 7] [a] FAIL LOGIN: Client "192.0.2.9"] FAIL LOGIN: Client "192.0.2.1"`:                                                                                                                "192.0.2.1 vsftpd login failed",
		`2018/04/17 06:25:06 [error] 7#7: *1 limiting requests, excess: 5.4 by zone "z", client: 192.0.2.1, server: a, request: "GET /, client: 192.0.2.9, server: b HTTP/1.1"`:                                              "192.0.2.1 nginx limited",
		`2018/04/17 06:25:06 [error] 7#7: *1 user "a" was not found in "/f", client: 192.0.2.1, server: a, request: "GET / HTTP/1.1"`:                                                                                        "192.0.2.1 nginx unknown user",
		`2018/04/17 06:25:06 [error] 7#7: *1 user "a": password mismatch, client: 192.0.2.1, server: a, request: "GET / HTTP/1.1"`:                                                                                           "192.0.2.1 nginx login failed",
		`2018/04/17 06:25:06 [error] 7#7: *1 user "a" was not found in "/g" was not found in "/f", client: 192.0.2.1, server: a, request: "GET / HTTP/1.1", referrer: "a": password mismatch, client: 192.0.2.9, server: b"`: "192.0.2.1 nginx unknown user",
		`2018/04/17 06:25:06 [error] 7#7: *1 user "a" was not found in "/g": password mismatch, client: 192.0.2.1, server: a, request: "GET / HTTP/1.1", referrer: "a" was not found in "/f", client: 192.0.2.9, server: b"`: "192.0.2.1 nginx login failed",
		`2018/04/17 06:25:06 [error] 7#7: *1 user "a": password mismatch, client: 192.0.2.1, server: a, request: "GET /": password mismatch, client: 192.0.2.9, server: b HTTP/1.1"`:                                         "192.0.2.1 nginx login failed",
		`2018/04/17 06:25:06 [error] 7#7: *1 upstream timed out, client: 192.0.2.1, server: a, request: "GET / HTTP/1.1"`:                                                                                                    "192.0.2.1 nginx error",
		`[Tue Apr 17 06:25:06 2018] [error] [client 192.0.2.1] user a: authentication failure for "/": Password Mismatch`:                                                                                                    "192.0.2.1 apache2 login failed",
		`[Tue Apr 17 06:25:06.25 2018] [auth_basic:error] [pid 7] [client 192.0.2.1:4711] AH01618: user a not found: /, [client 192.0.2.9]`:                                                                                  "192.0.2.1 apache2 unknown user",
		`[Tue Apr 17 06:25:06.25 2018] [auth_digest:error] [pid 7:tid 8] [client 192.0.2.1:4711] AH01792: user a: password mismatch: /`:                                                                                      "192.0.2.1 apache2 login failed",

		`2018/04/17 06:25:06 [error] 7#7: *1 user "a": password mismatch, client: 192.0.2.1, server: a, request: "GET / HTTP/1.1", referrer: ", client: 192.0.2.9, server: s"`:                               "192.0.2.1 nginx login failed",
		`2018/04/17 06:25:06 [error] 7#7: *1 user "a" was not found in "/f", client: 192.0.2.1, server: a, request: "GET / HTTP/1.1", referrer: " was not found in "/f", client: 192.0.2.9, server: s, "`:    "192.0.2.1 nginx unknown user",
		`2018/04/17 06:25:06 [error] 7#7: *1 open() "/srv/, client: " failed (2: No such file or directory), client: 192.0.2.1, server: , request: "GET /,%20client:%20 HTTP/1.1", host: "a"`:                "192.0.2.1 nginx error",
		`2018/04/17 06:25:06 [error] 7#7: *1 open() "/srv/, client: 192.0.2.9, server: a" failed (2: No such file or directory), client: 192.0.2.1, server: a, request: "GET /x HTTP/1.1"`:                   "192.0.2.1 nginx error",
		`2018/04/17 06:25:06 [error] 7#7: *1 open() "/srv/x" failed (2: No such file or directory), client: 192.0.2.1, server: a, request: "GET /x HTTP/1.1", referrer: "y, client: 192.0.2.9, server: a b"`: "192.0.2.1 nginx error",
		`2018/04/17 06:25:06 [error] 7#7: *1 open() "/srv/, client: 192.0.2.9, server: a, request: "" failed (2: No such file or directory), client: 192.0.2.1, server: a, request: "GET /x HTTP/1.1"`:       "",
		`2018/04/17 06:25:06 [error] 7#7: *1 open() "/srv/x" failed (2: No such file or directory), client: unix:, server: a, request: "GET /x HTTP/1.1", referrer: "y, client: 192.0.2.9, server: a, "`:     "",
		"Apr 17 06:25:06 mx sm-mta[7]: k1: ruleset=check_rcpt, arg1=<a, relay=[192.0.2.9], reject=x@y>, relay=h.example [192.0.2.1], reject=550 5.7.1 x":                                                     "",
		"Apr 17 06:25:06 mx sm-mta[7]: k1: ruleset=check_rcpt, arg1=<a@b>, relay=h.example [192.0.2.1] (may be forged), reject=550 5.7.1 x":                                                                  "192.0.2.1 sendmail rejected",
		`2018-04-17 06:25:06 SMTP protocol synchronization error (next input sent too soon): rejected "EHLO x H=[192.0.2.9]y" H=a.example [192.0.2.1] next input="z"`:                                        "",
		`2018-04-17 06:25:06 SMTP protocol synchronization error (next input sent too soon): rejected "EHLO x" H=[192.0.2.1] next input="z"`:                                                                 "192.0.2.1 exim bad protocol",
		"Apr 17 06:25:06 mx auth: pam(a (auth failed rip=192.0.2.9,192.0.2.1): unknown user":                                                                                                                 "192.0.2.1 dovecot login failed",
		`[2018-04-17 06:25:06] SECURITY[7] res_security_log.c: SecurityEvent="FailedACL",AccountID="a,RemoteAddress="IPV4/UDP/192.0.2.9/1,",RemoteAddress="IPV6/UDP/2001:db8::1/5060"`:                       "",
		"Apr 17 06:25:06 mx sm-mta[7]: AUTH failure (LOGIN): a, relay=[192.0.2.9], relay=h.example [192.0.2.1]":                                                                                              "",
		"[Tue Apr 17 06:25:06.25 2018] [core:error] [pid 7:tid 8] [client 192.0.2.1:4711] AH00126: Invalid URI in request GET / [client 192.0.2.9]":                                                          "192.0.2.1 apache2 error",
		"[Tue Apr 17 06:25:06 2018] [error] [client 192.0.2.1] File does not exist: /srv":                                                                                                                    "192.0.2.1 apache2 error",
		"2018-04-17 06:25:06 login authenticator failed for (a) [192.0.2.1]:4711 I=[198.51.100.1]:25: 535 Incorrect authentication data (set_id=a)":                                                          "192.0.2.1 exim login failed",
		"2018-04-17 06:25:06 login authenticator failed for (a [192.0.2.9]) [192.0.2.1]: 535 Incorrect authentication data":                                                                                  "",
		"17-Apr-2018 06:25:06.25 client @0x7f 192.0.2.1#3076 (a.example): query (cache) 'a.example/ANY/IN' denied":                                                                                           "192.0.2.1 named denied",
		"[Apr 17 06:25:06] NOTICE[7] chan_sip.c: Registration from '<sip:a@b>' failed for '192.0.2.1:5060' - Wrong password":                                                                                 "192.0.2.1 asterisk login failed",
		"[2018-04-17 06:25:06.129][vaultwarden::api::identity][ERROR] Username or password is incorrect. Try again. IP: 192.0.2.1. Username: a. IP: 192.0.2.9. Username: b":                                  "192.0.2.1 vaultwarden login failed",
		"type=USER_LOGIN msg=audit(1523946306.250:4063): user pid=7 uid=0 msg='op=login acct=61 exe=\"/usr/sbin/sshd\" hostname=? addr=192.0.2.1 terminal=ssh res=failed'":                                   "192.0.2.1 auditd login failed",
		"Apr 17 06:25:06 gate sshd[1]: Failed hostbased for a from 192.0.2.1 port 7 ssh2: RSA 8c:e3, client user \"a\", client host \"b\"":                                                                   "192.0.2.1 sshd login failed",
		"Apr 17 06:25:06 gate sshd[1]: Failed hostbased for a from 192.0.2.9 port 7 ssh2: x from 192.0.2.1 port 7 ssh2: RSA 8c:e3":                                                                           "",
		"Apr 17 06:25:06 gate sshd[1]: Failed hostbased for a from 192.0.2.1 port 7 ssh2: RSA 8c:e3, client user \"a\", client host \"b from 192.0.2.9 port 7\"":                                             "",
		"Apr 17 06:25:06 gate sshd[1]: Disconnecting invalid user a 192.0.2.9 port 7: b 192.0.2.1 port 7: Change of username or service not allowed: (a,ssh-connection) -> (b,ssh-connection) [preauth]":     "192.0.2.1 sshd not allowed",
		"Apr 17 06:25:06 gate sshd[1]: Failed password for a from 192.0.2.1 port 7 ssh1":                                                                                                                     "192.0.2.1 sshd login failed",
		"Apr 17 06:25:06 gate sshd[1]: Failed password for a from 192.0.2.1 port 7 ssh1: ruser from 192.0.2.9":                                                                                               "",
		"Apr 17 06:25:06 gate sshd[1]: Received disconnect from 192.0.2.1: 3: From here, 192.0.2.9: Auth fail [preauth]":                                                                                     "192.0.2.1 sshd connection closed",
		"Apr 17 06:25:06 gate sshd[1]: Received disconnect from 192.0.2.1 port 7:11: Normal Shutdown, Thank you for playing [preauth]":                                                                       "192.0.2.1 sshd connection closed",
		"Apr 17 06:25:06 mx dovecot: imap-login: Disconnected: Connection closed: read failed (auth failed, 1 attempts in 2 secs): user=<a>, rip=192.0.2.1":                                                  "192.0.2.1 dovecot login failed",
		"Apr 17 06:25:06 mx dovecot: imap-login: Login aborted: x (no auth attempts in 0 secs): user=<a, rip=192.0.2.9, >, rip=192.0.2.1, lip=198.51.100.1":                                                  "",
		"@400000005ad5934c0ee6b280 imap-login: Info: Aborted login (auth failed, 1 attempts): user=<a>, method=PLAIN, rip=192.0.2.1, lip=198.51.100.1":                                                       "192.0.2.1 dovecot login failed",
		"Apr 17 06:25:06 auth-worker(7): Info: conn unix:auth-worker (uid=1): auth-worker<7>: sql(a,192.0.2.9): x,192.0.2.1): unknown user":                                                                  "192.0.2.1 dovecot login failed",
		"Apr 17 06:25:06 auth: Info: ldap(a,192.0.2.1,): invalid credentials":                                                                                                                                "192.0.2.1 dovecot login failed",
		"2018-04-17 06:25:06 [7] 1ahr79-0006jK-G9 SMTP connection from (a) [192.0.2.1]:44 I=[198.51.100.1]:25 closed by DROP in ACL":                                                                         "192.0.2.1 exim connection closed",
		"2018-04-17 06:25:06 H=[192.0.2.1]:62839 dropped by 'connect' ACL: [192.0.2.9]":                                                                                                                      "192.0.2.1 exim rejected",
		"2018-04-17 06:25:06 no IP address found for host a.example (during SMTP connection from [192.0.2.1]:4 I=[198.51.100.1]:25)":                                                                         "192.0.2.1 exim rejected",
		"2018-04-17 06:25:06 1VxPit-000MMd-U4 SA: Action: silently tossed message: score=3 (x). From <a> (host=a.example [192.0.2.1]) for b":                                                                 "192.0.2.1 exim rejected",
		"2018-04-17 06:25:06 1VxPit-000MMd-U4 SA: Action: silently tossed message: From <a (host=b [192.0.2.9]) for> (host=a.example [192.0.2.1]) for b":                                                     "",
		"[Apr 17 06:25:06] NOTICE[7]: res_pjsip_session.c:2337 new_invite: Call from 'a' (TCP:[192.0.2.1]:61470) to extension '9' rejected because x":                                                        "192.0.2.1 asterisk denied",
		"[2018-04-17 06:25:06] NOTICE[7] res_pjsip.c: Request 'INVITE' from '\"a\" <sip:a@198.51.100.1>' failed for '192.0.2.1:48336' (callid: 2) - No match":                                                "192.0.2.1 asterisk login failed",
		"[2018-04-17 06:25:06] NOTICE [7] manager.c: 192.0.2.1 failed to authenticate as 'a'":                                                                                                                "192.0.2.1 asterisk login failed",
		"Apr 17 06:25:06 pbx asterisk[7]: WARNING[7][C-0]: Ext. s:6 in @ x: \"Rejecting unknown SIP connection from 192.0.2.1\"":                                                                             "192.0.2.1 asterisk denied",
		"04-17 06:25:06.25 [WARN] [SOFIA] [sofia_reg.c:4130] Can't find user [7@a] from 192.0.2.1":                                                                                                           "192.0.2.1 freeswitch unknown user",
		"04-31 06:25:06.25 [WARN] [SOFIA] [sofia_reg.c:4130] Can't find user [7@a] from 192.0.2.1":                                                                                                           "",
		"[17/Apr/2018 06:25:06] SMTP: User a@b.example doesn't exist. Attempt from IP address 192.0.2.1.":                                                                                                    "192.0.2.1 kerio unknown user",
		"180417  6:25:06 [Warning] Access denied for user 'a'@'192.0.2.1' (using password: NO)":                                                                                                              "192.0.2.1 mysqld login failed",
		"Apr 17 06:25:06 ns named[7]: client 192.0.2.1#7 (a.example): bad zone transfer request: 'a/IN': x":                                                                                                  "192.0.2.1 named denied",
		"[2018-04-17 06:25:06] nsd[7]: info: axfr for a.example. from 192.0.2.1 refused, no acl matches":                                                                                                     "192.0.2.1 nsd denied",
		"Apr 17 06:25:06 mx sm-mta[7]: 55HIbcGI002794: a.example [IPv6:2001:db8::1] (may be forged) did not issue MAIL/EXPN/VRFY/ETRN during connection to MTA":                                              "2001:db8::1 sendmail connection closed",
		"Apr 17 06:25:06 <mail.info> mx sm-mta[7]: 55HIbcGI002794: lost input channel from a.example [192.0.2.1] to MTA-v4 after rcpt":                                                                       "192.0.2.1 sendmail connection closed",
		"Apr 17 06:25:06 mx solid-pop3d[7]: APOP authentication failed for user a - 192.0.2.9 - 192.0.2.1":                                                                                                   "192.0.2.1 solid-pop3d login failed",
		"Apr 17 06:25:06 mx imapd[7]: Failed uwmaster override of user=a  host=b.example [192.0.2.1] ":                                                                                                       "192.0.2.1 courier login failed",
		"Apr 17 06:25:06   web lighttpd[7]: (mod_fastcgi.c.2676) FastCGI-stderr: ALERT - x (attacker '192.0.2.1', file 'y')":                                                                                 "192.0.2.1 lighttpd denied",
		"Apr 17 06:25:06 ap dropbear[7]: [7] Apr 17 06:25:06 Bad password attempt for 'a' from 192.0.2.1:52289":                                                                                              "192.0.2.1 dropbear login failed",
		"[PDT Apr 17 06:25:06] error    : HttpRequest: access denied -- client 192.0.2.1: wrong password":                                                                                                    "192.0.2.1 monit login failed",
		"Apr 17 06:25:06 web nginx[7]: web nginx: 2018/04/17 06:25:06 [error] 7#7: *1 limiting requests, excess: 5.4, client: 192.0.2.1, server: a":                                                          "192.0.2.1 nginx limited",
		"2018-04-17 06:25:06,116 INFO [org.x.Trail] - Tue Apr 17 06:25:06 CEST 2018|CAS|x|AUTHENTICATION_FAILED|a|192.0.2.9|192.0.2.1|198.51.100.1":                                                          "192.0.2.1 apereo-cas login failed",
		"2018-04-17 06:25:06.2|Warn|Auth|Auth-Failure ip 192.0.2.1 username 'a'":                                                                                                                             "192.0.2.1 prowlarr login failed",
		"2018-04-17T06:25:06+02:00: authentication failure; rhost=[2001:db8::1]:47414 user=a msg=x":                                                                                                          "2001:db8::1 pvedaemon PAM failure",
		"[17/Apr/2018:06:25:06 +0000] MISS 404 404 - GET https a.example \"/x\" [Client 192.0.2.1] [Length 2] [Gzip -] \"b [Client 192.0.2.9]\"":                                                             "192.0.2.1 nginx-proxy-manager request",
		"Apr 17 06:25:06 fw php-fpm[7]: /index.php: webConfigurator authentication error for user 'a' from: 192.0.2.1":                                                                                       "192.0.2.1 pfsense login failed",
		"[2018-04-17 06:25:06.129][vaultwarden::api::admin][ERROR] Invalid admin token! IP: 192.0.2.1. Username: a":                                                                                          "192.0.2.1 vaultwarden login failed",
		"<30>1 2018-04-17T06:25:06+08:00 gate charon 7 - - 06[JOB] <3fdb|83> deleting half open IKE_SA with 192.0.2.1 after timeout":                                                                         "192.0.2.1 charon timeout",
		"Apr 17 06:25:06 db mysqld: 2018-04-17T06:25:06.25Z 7 [Note] Access denied for user 'a'@'192.0.2.1' (using password: YES)":                                                                           "192.0.2.1 mysqld login failed",
	} {
		var ev match.Event
		got := ""
		if newParser(t, "messages", accesslog.Options{Year: 2018}).Parse([]byte(line), &ev) {
			got = fmt.Sprintf("%s %s %s", ev.Get(match.Client), ev.GetNamed("program"), ev.GetNamed("reason"))
		}
		if got != want {
			t.Errorf("%s\n\tis %q, want %q", line, got, want)
		}
	}
}

// Messages of sudo and su have a user, and no client unless the user is elsewhere.
func TestUsersOfThisMachine(t *testing.T) {
	for line, want := range map[string]string{
		"sudo: pam_unix(sudo:auth): authentication failure; logname=ann uid=1000 euid=0 tty=/dev/pts/0 ruser=ann rhost=  user=ann": " ann sudo PAM failure",
		"su[7]: pam_unix(su:auth): authentication failure; logname= uid=0 euid=0 tty=a ruser=b rhost=192.0.2.1  user=ann":          "192.0.2.1 ann su PAM failure",
		"sudo:      ann : 3 incorrect password attempts ; TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/sh":                         " ann sudo login failed",
		"sudo:      ann : 1 incorrect password attempt ; TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/sh":                          " ann sudo login failed",
		"sudo[7]: longername : user NOT in sudoers ; TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/sh":                              " longername sudo not allowed",
		"su: FAILED SU (to root) ann on pts/0": " ann su login failed",
		"sudo:      ann : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/echo x : 3 incorrect password attempts ; y": "",
		"sudo: pam_unix(sudo:session): session opened for user root by ann(uid=0)":                                 "",
	} {
		var ev match.Event
		got := ""
		if newParser(t, "messages", accesslog.Options{Year: 2018}).Parse([]byte("Apr 17 06:25:06 gate "+line), &ev) {
			got = fmt.Sprintf("%s %s %s %s", ev.Get(match.Client), ev.Get(match.User), ev.GetNamed("program"), ev.GetNamed("reason"))
		}
		if got != want {
			t.Errorf("%s\n\tis %q, want %q", line, got, want)
		}
	}
}

// A line that stands for several events returns that number.
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

// What a parser keeps from a line, its minute and its tag, must not change another: each line gives the same event in a
// parser that has read others and in a new one.
func TestMessagesInAnyOrder(t *testing.T) {
	rng := randtest.New(t)
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	used := newParser(t, "messages", accesslog.Options{Year: 2022})
	events := 0
	for range 20_000 {
		line := pick("Jun  8 23:59:", "Jun  9 00:00:", "Jun 9 00:00:", "Jun 18 23:59:", "2022-06-08T23:59:", "[Jun  8 23:59:", "Jun  8 24:59:") +
			pick("00", "07", "59", "60", "61", "7x") + pick(" ", " ", "] ", "Z ", "") +
			pick("gate ", "gate ", "gat ", "") + pick("sshd", "sshd", "ssh", "[sshd", "kernel", "su(a)", "postfix/smtpd") +
			pick("[7]: ", "[123]: ", "[12]:", "[]: ", "[1]:  ", "[1]: [ID 7 a] ", " [1]: ", ": ", "[x]: ") +
			pick("Invalid user x from 203.0.113.9", "lost connection after A from b[203.0.113.9]", "authentication failure; rhost=203.0.113.9 user=x", "")
		read := func(p *accesslog.Parser) string {
			var ev match.Event
			if !p.Parse([]byte(line), &ev) {
				return fmt.Sprint(p.Skipped())
			}
			events++
			return fmt.Sprint(ev.Time, p.Yearless(), string(ev.Get(match.Client)), string(ev.GetNamed("program")), string(ev.GetNamed("reason")))
		}
		if got, want := read(used), read(newParser(t, "messages", accesslog.Options{Year: 2022})); got != want {
			t.Fatalf("%q is %s after others, want %s", line, got, want)
		}
	}
	if events < 1000 { // of some 2,100
		t.Errorf("%d events: too few to test anything", events)
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
