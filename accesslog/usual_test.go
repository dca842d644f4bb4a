package accesslog_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// usualLogs are lines of logs that machines have, and what each is detected and read as: format,
// client, program and reason.
var usualLogs = map[string]string{
	"2026-04-17T06:25:06.123456+02:00 gate sshd[812]: Invalid user admin from 192.0.2.1 port 4711":                                                                           "messages 192.0.2.1 sshd unknown user",
	"2026-04-17T06:25:06.123456+02:00 gate sshd[812]: Connection closed by authenticating user root 192.0.2.1 port 4711 [preauth]":                                           "messages 192.0.2.1 sshd connection closed",
	"2026-04-17T06:25:06.123456+02:00 gate sshd[812]: Failed publickey for root from 192.0.2.1 port 4711 ssh2: RSA SHA256:abc":                                               "messages 192.0.2.1 sshd key refused",
	"2026-04-17T06:25:06.123456+02:00 gate sshd[812]: error: maximum authentication attempts exceeded for root from 192.0.2.1 port 4711 ssh2 [preauth]":                      "messages 192.0.2.1 sshd too many failures",
	"2026-04-17T06:25:06.123456+02:00 gate sshd[812]: User root from 192.0.2.1 not allowed because not listed in AllowUsers":                                                 "messages 192.0.2.1 sshd not allowed",
	"2026-04-17T06:25:06.123456+02:00 gate sshd[812]: message repeated 3 times: [ Failed password for root from 192.0.2.1 port 4711 ssh2]":                                   "messages 192.0.2.1 sshd login failed",
	"2026-04-17T06:25:06+02:00 gate sudo:      ann : 3 incorrect password attempts ; TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/sh":                                        "messages  sudo login failed",
	"2026-04-17T06:25:06+02:00 gate login[7]: pam_unix(login:auth): authentication failure; logname= uid=0 euid=0 tty=/dev/tty1 ruser= rhost=192.0.2.1  user=root":           "messages 192.0.2.1 login PAM failure",
	"2026-04-17T06:25:06+02:00 mx postfix/smtpd[7]: warning: unknown[192.0.2.1]: SASL LOGIN authentication failed: x":                                                        "messages 192.0.2.1 postfix login failed",
	"2026-04-17T06:25:06+02:00 mx dovecot: imap-login: Disconnected: Connection closed (auth failed, 1 attempts in 6 secs): user=<a>, rip=192.0.2.1, lip=198.51.100.1, TLS":  "messages 192.0.2.1 dovecot login failed",
	`Fri Apr 17 06:25:06 2026 [pid 7] [a] FAIL LOGIN: Client "192.0.2.1"`:                                                                                                    "messages 192.0.2.1 vsftpd login failed",
	"2026-04-17 06:25:06 login authenticator failed for (a) [192.0.2.1]:4711 I=[198.51.100.1]:25: 535 Incorrect authentication data (set_id=a)":                              "messages 192.0.2.1 exim login failed",
	`2026/04/17 06:25:06 [error] 7#7: *1 user "a" was not found in "/f", client: 192.0.2.1, server: a, request: "GET / HTTP/1.1", host: "a"`:                                 "messages 192.0.2.1 nginx unknown user",
	`[Fri Apr 17 06:25:06.25 2026] [auth_basic:error] [pid 7:tid 8] [client 192.0.2.1:4711] AH01617: user a: authentication failure for "/": Password Mismatch`:              "messages 192.0.2.1 apache2 login failed",
	"2026-04-17T06:25:06+02:00 gate kernel: [35266.781076] [UFW BLOCK] IN=e0 OUT= MAC=00 SRC=192.0.2.1 DST=198.51.100.4 LEN=52 PROTO=TCP SPT=31745 DPT=25 WINDOW=1 ":         "messages 192.0.2.1 kernel blocked",
	"Apr 17 06:25:06 gate kernel: iptables denied: IN=e0 OUT= SRC=192.0.2.1 DST=198.51.100.4 LEN=52 PROTO=TCP SPT=31745 DPT=25 ":                                             "messages 192.0.2.1 kernel blocked",
	"Apr 17 06:25:06 gate kernel: nft drop: IN=e0 OUT= MAC=00 SRC=2001:db8::1 DST=2001:db8::2 LEN=52 TC=0 PROTO=UDP SPT=31745 DPT=25 LEN=9":                                  "messages 2001:db8::1 kernel blocked",
	"tls 2.0 2026-04-17T06:25:06 net/shop/50dc6c495c0c9188 g3d4b5e8bb8464cd 192.0.2.1:4711 198.51.100.9:443 42 2 98 512 - arn:x - ECDHE tlsv12 - shop.example - - -":         "nlb 192.0.2.1  ",
	"1776407106.250     42 192.0.2.1 TCP_MISS/200 512 GET http://shop.example/ - HIER_DIRECT/198.51.100.9 text/html":                                                         "squid 192.0.2.1  ",
	"Apr 17 06:25:06 gate haproxy[812]: 192.0.2.1:4711 [17/Apr/2026:06:25:06.250] smtp mail/mx1 0/0/42 512 -- 1/1/0/0/0 0/0":                                                 "haproxy-tcp 192.0.2.1  ",
	`{"timestamp":"1776407106","c-ip":"192.0.2.1","cs-method":"GET","cs-uri-stem":"/cart","sc-status":"200","cs(User-Agent)":"Wren/2.1","x-edge-location":"FRA2"}`:           "json 192.0.2.1  ",
	`192.0.2.1 - - [17/Apr/2026:06:25:06 +0200] "GET /cart HTTP/1.1" 200 512`:                                                                                                "clf 192.0.2.1  ",
	"17-Apr-2026 06:25:06.459 WARNING [http-nio-8080-exec-1] org.x.LockOutRealm.filterLockedAccounts An attempt was made to authenticate the locked user [a] from 192.0.2.1": "text 192.0.2.1  ",
	"2026-04-17 06:25:06,250 WARN  [http-8080-1] shop.Auth (Auth.java:12) - Login of ada failed, remote address 192.0.2.1":                                                   "text 192.0.2.1  ",
	"[2026-04-17T06:25:06,250][WARN ][o.e.x.s.a.AuthenticationService] authentication of [ada] failed from [192.0.2.1:4711]":                                                 "text 192.0.2.1  ",
}

func TestUsualLogs(t *testing.T) {
	for line, want := range usualLogs {
		f, _ := accesslog.Detect([]byte(line + "\n"))
		p := must.Get(f.NewParser(accesslog.Options{Year: 2026}))(t)
		var ev match.Event
		ok := p.Parse([]byte(line), &ev)
		got := fmt.Sprintf("%s %s %s %s", f, ev.Get(match.Client), ev.GetNamed("program"), ev.GetNamed("reason"))
		if !ok || got != want {
			t.Errorf("%s\n\tis %q, %v, want %q", line, got, ok, want)
		}
	}
}

// Files other than logs have no format, whatever addresses they contain.
func TestOtherFilesAreNotLogs(t *testing.T) {
	files := 0
	for _, root := range []string{"../docs", "../ratelimit", "../match"} {
		must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			if f, ok := accesslog.Detect(text); ok {
				t.Errorf("%s is detected as %s", path, f)
			}
			return nil
		}))
	}
	if files < 100 {
		t.Errorf("%d files were looked at: must be 100 or more", files)
	}
}
