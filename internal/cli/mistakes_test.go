package cli

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// mistakes is command lines with one mistake each: the exit code, the arguments, and the answer, in which … stands
// for any text. $HTTP and $RESP are the listeners of a server with rules.yaml, $LOCKED is a server with tokens, $TLS one with
// a certificate of its own.
const mistakes = `
2 sreve -> unknown command "sreve": did you mean serve?
2 repaly access.log -> unknown command "repaly": did you mean replay?
2 brew -> unknown command "brew": must be one of …, serve, …
2 serve --rule rules.yaml -> unknown flag --rule: did you mean --rules?; see lately serve --help
2 serve --port 8080 -> unknown flag --port; see lately serve --help
2 serve --nfttables -> unknown flag --nfttables: did you mean --nftables?; …
2 serve --rules -> --rules: missing value: must be --rules FILE; …
2 serve --rules missing.yaml -> rules file: … missing.yaml: no such file or directory
2 serve --rules wrong.yaml -> wrong.yaml:3:15: limit: unknown key "kye": did you mean key?
2 serve --rules . -> rules file: .: a directory: must be a regular file
1 serve --http off --resp $RESP -> resp: listen tcp $RESP: bind: address already in use: choose another address with --resp, or --resp off
1 serve --resp off --http $PORT -> http: listen tcp $PORT: bind: address already in use: choose another address with --http, or --http off
2 serve --resp off --http 0.0.0.0:0 -> http: other machines can reach 0.0.0.0:0 without tokens and TLS: use a loopback address, or …
2 serve --http localhost -> http: "localhost": must be an address such as 127.0.0.1:7379, a socket such as unix:/run/lately/http.sock, or off
2 serve --http off --resp off -> resp and http: both off: must be …
2 serve --memory lots -> --memory: "lots": must be a number of bytes such as 268435456, 256MiB or 2GiB; …
2 serve --lateness 5 -> --lateness: "5": must be a duration such as 30s or 5m; …
2 serve --trusted-proxy localhost -> --trusted-proxy: "localhost": must be addresses and networks such as 10.0.0.0/8, or unix; …
2 serve --token-file open-tokens -> tokens: others can read open-tokens (mode 0644), … run: chmod 600 open-tokens
2 serve --store localhost:6379 -> --store: "localhost:6379": must be the URL of Redis or Valkey, such as redis://…
2 serve --log-level loud -> --log-level: "loud": must be debug, info, warn or error; …
2 serve extra -> serve: argument "extra": must be flags only
2 rules reload -> rules: argument "reload": must be flags only; did you mean lately reload?
2 replay -> no file: must be one or more paths, or - for standard input
1 replay missing.log -> missing.log: cannot be read: no such file or directory
2 replay --limit 60 access.log -> --limit: "60": the span is missing: must be N/SPAN or N/PERIOD, such as 60/1m or 1000/day
2 replay --limits 60/1m access.log -> unknown flag --limits: did you mean --limit?; see lately replay --help
2 replay --key cleint access.log -> --key: unknown field "cleint"; did you mean client?
2 replay --where sttus=500 access.log -> --where: unknown field "sttus"; did you mean status?
2 replay --where status access.log -> --where: "status": must be FIELD=PATTERN or FIELD!=PATTERN, such as status=5xx or path!=/api/**
2 replay --format ngnix access.log -> --format: … "ngnix" is unknown; use clf, …
2 replay --since yesterday access.log -> --since: "yesterday": must be a time such as …
2 replay --tz Vienna access.log -> --tz: "Vienna": must be the name of a time zone, such as Europe/Vienna, or UTC or Local
2 replay --top many access.log -> --top: "many": must be a whole number; …
2 replay --resolution 1 access.log -> --resolution: "1": must be a duration such as 10s, 5m or 1h; …
2 replay --json=maybe access.log -> --json: "maybe": must be true or false; …
2 replay --sort peek access.log -> --sort: "peek": must be count, peak or refused
2 replay --rule per-client access.log -> unknown flag --rule: did you mean --rules?; …
1 replay --format messages access.log -> access.log: none of its … is of format messages; its first line is of format clf; …
1 replay rules.yaml -> rules.yaml: no known log format fits its first lines, such as …; name one with --format: …
2 diff rules.yaml access.log -> diff: 2 arguments: must be the old rules file, the new rules file and one or more logs
1 diff --addr $HTTP rules.yaml -> $HTTP: CONFLICT the server keeps no events: start it with the setting keep-events, such as 64MiB; …
2 explain --key 192.0.2.1 access.log -> --rules: missing: must be given, as in --rules rules.yaml --key 192.0.2.1
2 explain --addr $HTTP --key 1 access.log -> FILE: "access.log": must not be given with --addr
2 explain --token-file t --rules rules.yaml --key 1 access.log -> --token-file: must be given with --addr: …
2 test rules.yaml -> test: rules.test.yaml: missing: must have the tests of rules.yaml, or test files must be given
2 validate -> validate: no file: must be at least one, the path of a rules file
2 validate wrong.yaml -> wrong.yaml:3:15: limit: unknown key "kye": did you mean key?
2 key --addr $HTTP -> KEY: missing: must be the key of a rule, such as 203.0.113.9
1 key --addr $HTTP a b c -> … KEY: 3 values: no rule and no counter counts by as many fields
2 ban --addr $HTTP 192.0.2.1 -> --rule: missing: must be the name of a limit or a ban; lately rules lists them
1 ban --addr $HTTP --rule per-clint --for 1h 192.0.2.1 -> $HTTP: NORULE unknown rule "per-clint": did you mean "per-client"?
2 ban --addr $HTTP --rule per-client --for soon 192.0.2.1 -> --for: "soon": must be a duration such as 10m, 1h or 7d
1 ban --addr $HTTP --rule per-client --for 1h 192.0.2.300 -> $HTTP: BADARG client: "192.0.2.300": must be an address such as …
1 ban --addr $HTTP --rule login --for 1h 192.0.2.1 -> $HTTP: BADARG number of key values: 1: must be 2: client, user
2 unban --addr $HTTP -> KEY: missing: must be a key such as 203.0.113.9, or --pattern or --network must be given
1 unban --addr $HTTP --rule nobody 192.0.2.1 -> $HTTP: NORULE unknown rule "nobody": must be one of …
1 unban --addr $HTTP --network 192.0.2.0/99 -> $HTTP: BADARG network: "192.0.2.0/99": must be an address or a network such as 192.0.2.0/24
2 bans --addr $HTTP --limit -1 -> --limit: -1: must be 1 or more, or 0 for all
1 bans --addr $HTTP --rule nobody -> $HTTP: NORULE unknown rule "nobody": must be one of …
2 bans --addr $HTTP --for 1h -> unknown flag --for: it is a flag of ban; …
1 status --addr 127.0.0.1:1 -> http://127.0.0.1:1: no connection: …: must be the HTTP listener of a running server
1 status --addr $RESP -> http://$RESP: …: must be the HTTP listener of a running server
1 status --addr http://$TLS -> http://$TLS: ERR the answer is 400 Bad Request: Client sent an HTTP request to an HTTPS server.
1 status --addr https://$TLS -> https://$TLS: …: its certificate must be signed by a CA that the system trusts, or by one in --ca-file
2 status --addr ftp://x -> --addr: server address: "ftp://x": must be http://HOST:PORT, https://HOST:PORT or unix:PATH, …
1 status --addr $LOCKED -> $LOCKED: NOAUTH …token…
1 reload --addr $LOCKED --token-file reader -> $LOCKED: NOPERM …role…
2 status --addr $HTTP --token-file missing -> --token-file: open missing: no such file or directory
2 status --addr $HTTP --ca-file rules.yaml -> --ca-file: rules.yaml: no certificate: must be certificates as PEM
2 status -a -> unknown flag -a: flags have two dashes and a name; see lately status --help
2 check --addr $HTTP -> check: no FIELD=VALUE: must be at least one, such as client=203.0.113.9
2 check --addr $HTTP client -> check: "client": must be FIELD=VALUE, such as client=203.0.113.9
2 check --addr $HTTP client=1 client=2 -> check: field "client": must be given once
1 check --addr $HTTP cleint=1 -> $HTTP: BADARG field "cleint": unknown; did you mean client?
2 top -> top: no terminal: must be run in one; lately status, rules and bans print the state of a server once
2 import fail2bam x -> import: "fail2bam": must be fail2ban
2 suggest --share 200 access.log -> --share: 200: must be a percentage of more than 0 and at most 100, …
2 follow access.log -> --rules: missing: must be a rules file, or --addr
2 follow --rules rules.yaml -=clf -> unknown flag -=clf: the standard input with a format must come behind two dashes, as in -- -=clf; see lately follow --help
2 follow --rules rules.yaml -> follow: no LOG: must be at least one
2 follow --rules rules.yaml --dry-run --nftables access.log -> --dry-run: must be without …, --nftables, …
2 follow --rules rules.yaml --name x access.log -> --name: must be with --addr
2 --version -> unknown flag --version: it is a command, lately version; see lately --help
2 --json status -> unknown flag --json: must come after the command, as in lately ban --json; see lately --help
2 help nosuch -> unknown command "nosuch": must be one of …
2 help serv -> unknown command "serv": did you mean serve?
2 completion bahs -> unknown command "bahs": did you mean bash?
2 version 1 -> version: argument "1": must be flags only
2 serve --config rules.yaml -> rules.yaml:1:1: this looks like a rules file, since it has "version": give it with --rules, or …
2 serve --config missing.yaml -> settings file: … missing.yaml: no such file or directory
2 serve --demo --rules rules.yaml -> demo: set with rules: must be without, as its traffic is made up
2 serve --demo --http 0.0.0.0:0 -> demo: set with http 0.0.0.0:0, which other machines can reach: must be a loopback address, such as 127.0.0.1:7380
2 serve --follow -> --follow: missing value: must be --follow FILE[=FORMAT]; …
2 serve --tz Vienna --follow access.log -> --tz: "Vienna": must be ZONE or FILE=ZONE, with a zone such as UTC, Europe/Vienna or +05:30; …
2 serve --tls-cert tokens -> tls-cert and tls-key: one is missing: must be both or none
2 replay --limit 60/fortnight access.log -> --limit: "60/fortnight": "fortnight": must be a duration such as 1m, or second, minute, …
2 replay --ban 100/5m access.log -> --ban: "100/5m": the length of the ban is missing: must be N/SPAN:DURATION, such as 100/5m:1h
2 replay --hot many access.log -> --hot: "many": the span is missing: must be N/SPAN or KEY:N/SPAN, such as 200/1m or client:200/1m
2 replay --rules rules.yaml --limit 60/1m access.log -> --rules: must not be given with --limit, --ban or --hot: …
2 ban --addr $HTTP --rule per-client 192.0.2.1 -> --for: missing: must be a duration such as 10m, 1h or 7d
1 ban --addr $HTTP --rule product --for 1h /a -> $HTTP: NORULE rule "product" is a hot rule, which neither limits nor bans: must be a limit or a ban, …
1 unban --addr $HTTP --rule product /a -> $HTTP: NORULE rule "product" is a hot rule, …
2 ban --addr $HTTP --rule per-client --for 1h --from bans.json -> --from: must not be given with KEY, --rule, --for or --reason: the file has them
1 ban --addr $HTTP --from rules.yaml -> --from: rules.yaml: …: must be the output of lately bans --json
2 unban --addr $HTTP --network 192.0.2.0/24 192.0.2.1 -> KEY: "192.0.2.1": must not be given with --pattern or --network
2 bans --addr $HTTP --match -> --match: missing value: must be --match TEXT; see lately bans --help
2 top --sort key -> unknown flag --sort: it is a flag of replay; see lately top --help
2 key --addr --json 192.0.2.1 -> --addr: server address: "--json": must be http://HOST:PORT, https://HOST:PORT or unix:PATH, …
1 key --addr $HTTP/console 192.0.2.1 -> $HTTP/console: BADARG path: unknown; /openapi.json has the paths of this server
1 status --addr $RESP -> http://$RESP: …: must be the HTTP listener of a running server
2 import fail2ban -> DIRECTORY: 0 arguments: must be the configuration directory of fail2ban, such as /etc/fail2ban
2 follow --rules rules.yaml --addr $HTTP access.log -> --rules: must not be given with --addr: the server judges the events, by its own settings
2 test rules.yaml access.log -> access.log:1:1: file: …: must be a mapping of version, tests
2 serve --token-file /nowhere/tokens -> tokens: … there is no directory /nowhere…
2 follow --rules rules.yaml --json access.log -> --json: must be with --dry-run or --addr
2 follow --rules rules.yaml --dry-run --data d access.log -> --dry-run: must be without --data, …
2 follow --rules rules.yaml a=b -> follow: … must be FILE, or FILE=FORMAT…
2 follow --rules rules.yaml --insecure access.log -> --insecure: must be given with --addr: …
2 follow --addr $HTTP --dry-run access.log -> --dry-run: must not be given with --addr: …
2 follow --addr ftp://x access.log -> --addr: server address: "ftp://x": …
1 follow --addr $HTTP --lateness 2h access.log=clf -> $HTTP: lateness: 2h0m0s: must be 0s to 1h0m0s
1 follow --addr $HTTP --name $LONG access.log=clf -> $HTTP: … feed: 256 bytes: must be 1 to 255…
2 validate rules.yaml rules.yaml -> rules files: rules.yaml twice: must be given once
`

const mistakenRules = `version: 1
counters:
  requests: {key: client, spans: [1m]}
limits:
  - {name: per-client, key: client, limit: 60 per 1m}
  - {name: login, key: [client, user], limit: 5 per 10m}
hot:
  - {name: product, key: path, threshold: 200 per 2s}
`

// TestMistakes makes one mistake at a time: the answer names it, its place, and what would be
// right.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": mistakenRules, "wrong.yaml": "version: 1\nlimits:\n  - {name: a, kye: client, limit: 5 per 1m}\n",
		"access.log":  "192.0.2.1 - - [02/Mar/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n",
		"tokens":      "admin an-admin-token-of-more-than-32-characters\n" + "read a-read-token-of-more-than-32-characters\n",
		"open-tokens": "admin an-admin-token-of-more-than-32-characters\n", "reader": "a-read-token-of-more-than-32-characters\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.Do(t, os.Chmod(filepath.Join(dir, "open-tokens"), 0o644))
	t.Chdir(dir)
	s, locked := serve(t, "--rules", "rules.yaml"), serve(t, "--rules", "rules.yaml", "--token-file", "tokens")
	encrypted := httptest.NewUnstartedServer(nil)
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	defer encrypted.Close()
	fill := strings.NewReplacer("$TLS", encrypted.Listener.Addr().String(), "$HTTP", s.http, "$PORT", strings.TrimPrefix(s.http, "http://"), "$RESP", s.resp, "$LOCKED", locked.http, "$ESC", "\x1b", "$LONG", strings.Repeat("x", 256))
	lines := strings.Split(strings.TrimSpace(mistakes), "\n")
	for _, line := range lines {
		line = fill.Replace(line)
		command, want, _ := strings.Cut(line, " -> ")
		code, args, _ := strings.Cut(command, " ")
		pattern := "^lately: " + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "\n"
		got, answer := mistaken(t, strings.Fields(args))
		if strconv.Itoa(got) != code || !regexp.MustCompile(pattern).MatchString(answer) {
			t.Errorf("lately %s: exit code %d, want %s\n got %s want %s", args, got, code, answer, want)
		}
	}
	if len(lines) < 100 {
		t.Errorf("%d mistakes, want at least 100", len(lines))
	}
}

// mistaken runs a command that must fail, without a report.
func mistaken(t *testing.T, args []string) (code int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &stdout, &stderr)
	if stdout.Len() > 0 {
		t.Errorf("lately %s: output %q", strings.Join(args, " "), stdout.Bytes())
	}
	return code, stderr.String()
}
