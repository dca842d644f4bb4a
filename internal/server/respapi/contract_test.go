package respapi

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// conversation is commands and replies of one connection to a server that has just started, at
// a clock that stands still.
const conversation = `
PING -> +PONG
ping hello -> "hello"
ECHO a~b -> "a b"
NOSUCH x -> -ERR unknown command 'NOSUCH'; COMMAND DOCS lists the commands
incr x -> -ERR unknown command 'incr'; a limit is TAKE rule key, or CL.THROTTLE key max_burst count period; a count is ADD counter key and SUM counter key
EVAL x 0 -> -ERR unknown command 'EVAL'; there are no scripts: a script that limits is TAKE rule key, or CL.THROTTLE key max_burst count period
SET x 1 -> -ERR unknown command 'SET'; this is not a key-value store: it has limits, counters, bans and hot keys; COMMAND DOCS lists its commands
TAKE login ada -> [1 3 2 0 600000 "login" 0]
take login ada cost 2 -> [1 3 0 0 600000 "login" 0]
PEEK login ada -> [0 3 0 600000 600000 "login" 0]
OUTCOME user ada -> -BADARG status, size, duration: all missing: an outcome must have one of them
OUTCOME user ada status 999 -> -BADARG status: "999": must be 100 to 599
OUTCOME user ada status 40x -> -BADARG status: "40x": must be 100 to 599
OUTCOME user ada size -1 -> -BADARG size: "-1": must be a number of bytes
OUTCOME user ada duration NaN -> -BADARG duration: "NaN": must be a number of seconds
OUTCOME user ada status 401 RESERVE 1000 -> -BADARG RESERVE, OUTCOME: must be left out of an outcome, which counts what has ended
OUTCOME user ada status 401 OUTCOME 1000 -> -BADARG RESERVE, OUTCOME: must be left out of an outcome, which counts what has ended
OUTCOME x status 401 -> -BADID id: not one that this server or one of its store gave out, or its secret has changed since: must be the id of a decision
OUTCOME x status -> -BADARG …
OUTCOME user ada status 401 -> [1 0 0 0 0 "" 0]
TAKE login ada -> [0 3 0 600000 600000 "login" 0]
TAKE login ada COST 4 -> [0 3 0 -1 600000 "login" 0]
REFUND login ada -> 1
PEEK login ada -> [1 3 0 0 600000 "login" 0]
REFUND login ada COST 9 -> 2
RESET login ada -> +OK
PEEK login ada COST 3 -> [1 3 0 0 600000 "login" 0]
CHARGE login ada COST 5 -> +OK
CHARGE login ada -> +OK
TAKE login ada -> [0 3 0 600000 600000 "login" 0]
RESET login ada -> +OK
CHARGE nosuch ada -> -NORULE …
CHARGE login ada COST 0 -> -BADARG COST: '0': must be 1 to 2147483648
CHARGE login ada FOR 1 -> -BADARG 'FOR': must be COST n
RESERVE login ada COST 4 -> [0 3 3 -1 0 "login" 0 0 ""]
RESERVE login ada COST 2 FOR 1000 -> [1 3 1 0 600000 "login" 0 0 "…
RESERVE login ada for 1000 cost 2 -> [0 3 1 600000 600000 "login" 0 0 ""]
CHECK user ada RESERVE 1000 -> [1 3 0 0 600000 "login" 0 0 "…
CHECK user ada RESERVE 0 -> -BADARG RESERVE: '0': must be 1 to 86400000
CHECK user ada RESERVE 1 RESERVE 1 -> -BADARG RESERVE: must be given once
RESERVE login ada FOR 86400001 -> -BADARG FOR: '86400001': must be 1 to 86400000
RESERVE login ada FOR -> -BADARG 'FOR': must be COST n, LIMIT n or FOR ms, each once
RESERVE login ada COST 1 COST 1 -> -BADARG 'COST': must be COST n, LIMIT n or FOR ms, each once
RESERVE nosuch ada -> -NORULE …
SETTLE x COST 1 -> -BADID id: not one that this server or one of its store gave out, or its secret has changed since: must be the id of a decision
SETTLE x COST -1 -> -BADARG COST: '-1': must be 0 to 2147483648
SETTLE x FOR 1 -> -BADARG 'FOR': must be COST n
RESET login ada -> +OK
TAKE nosuch ada -> -NORULE …
TAKE Login ada -> -NORULE …
TAKE login -> -BADARG wrong number of arguments for 'take': TAKE rule key [COST n] [LIMIT n]
TAKE login ada 4 -> -BADARG '4': must be COST n or LIMIT n, each once
TAKE login ada COST 1 1 -> -BADARG '1': must be COST n or LIMIT n, each once
TAKE login ada COST 1 COST 1 -> -BADARG 'COST': must be COST n or LIMIT n, each once
TAKE login ada LIMIT 3 -> -BADARG rule "login": its limit is fixed: must have at_most to take a limit from a request
TAKE login ada LIMIT 0 -> -BADARG LIMIT: '0': must be 1 to 2147483648
TAKE login ada COST -> -BADARG 'COST': must be COST n or LIMIT n, each once
TAKE login ada PRICE 1 -> -BADARG 'PRICE': must be COST n or LIMIT n, each once
TAKE login ada COST 0 -> -BADARG COST: '0': must be 1 to 2147483648
TAKE login ada COST 2147483649 -> -BADARG …
TAKE login ada COST 1.5 -> -BADARG …
TAKE login ada COST -1 -> -BADARG …
TAKE plan ada COST 2 -> [1 2 0 0 3600000 "plan" 0]
TAKE plan ada -> [0 2 0 3600000 3600000 "plan" 0]
PEEK plan ada LIMIT 4 -> [1 4 1 0 3600000 "plan" 0]
TAKE plan ada LIMIT 4 COST 2 -> [1 4 0 0 3600000 "plan" 0]
take plan ada cost 1 limit 999 -> [1 5 0 0 3600000 "plan" 0]
TAKE plan ada LIMIT 3 -> [0 3 0 3600000 3600000 "plan" 0]
TAKE plan ada LIMIT 3 COST 4 -> [0 3 0 -1 3600000 "plan" 0]
TAKE plan ada LIMIT -> -BADARG 'LIMIT': must be COST n or LIMIT n, each once
TAKE plan ada LIMIT 1 LIMIT 2 -> -BADARG 'LIMIT': must be COST n or LIMIT n, each once
RESERVE plan ada LIMIT 3 -> [0 3 0 3600000 3600000 "plan" 0 0 ""]
TAKE plan ada LIMIT x -> -BADARG …
TAKE pair 192.0.2.1^ada -> [1 2 1 0 3600000 "pair" 0]
TAKE pair 192.0.2.1 -> -BADARG …
CHECK client 192.0.2.1 user ada -> [1 2 0 0 3600000 "pair" 0]
CHECK client ::ffff:192.0.2.1 user ada -> [0 2 0 3600000 3600000 "pair" 0]
CHECK user bob cost 3 -> [1 3 0 0 600000 "login" 0]
CHECK user bob -> [0 3 0 600000 600000 "login" 0]
CHECK cOsT 1 user bob -> [0 3 0 600000 600000 "login" 0]
CHECK agent here -> [1 0 0 0 0 "" 0]
CHECK cleint 192.0.2.1 -> -BADARG field "cleint": unknown; did you mean client?
CHECK x-tenat t1 -> -BADARG field "x-tenat": unknown; did you mean x-tenant?
CHECK client 192.0.2.9:5556 -> [1 …
CHECK client 192.0.2.10 path /x/../flood?x=1 -> [1 5 4 0 60000 "flood" 0]
CHECK client [::ffff:192.0.2.9]:80 -> [1 …
SUM requests 192.0.2.9 -> 2
SUM requests 192.0.2.9:443 -> 2
CHECK user -> -BADARG wrong number…
CHECK user ada x -> -BADARG field 'x' has no value
CHECK COST 1 -> -BADARG event has 0 fields: must be 1 to 64
CHECK user ada COST 1 COST 2 -> -BADARG COST: must be given once
SUM requests 192.0.2.1 -> 2
SUM requests 192.0.2.1 SPAN 1m -> 2
SUM requests 192.0.2.1 SPAN 2h -> -BADARG span: 2h: must be at most 1h, the longest of counter "requests"
SUM requests 192.0.2.1 SPAN 60 -> -BADARG SPAN: '60': must be a duration of 1ms to 3650d, such as 500ms, 10m, 1h30m or 7d
SUM requests 192.0.2.1 SPAM 1m -> -BADARG 'SPAM': must be SPAN duration
SUM nosuch x -> -BADARG counter "nosuch": unknown: must be one of requests, tenants
RATE requests 192.0.2.1 SPAN 1s -> "2"
ADD pages /a -> +OK
ADD pages /b 5 -> +OK
ADD pages /b 0 -> -BADARG n: '0': must be 1 to 2147483648
ADD bad~name x -> -BADARG counter name: "bad name"…
SUM pages /b -> 5
TOP pages 10 -> ["/b" 5 "/a" 1]
TOP pages 1 SPAN 1m -> ["/b" 5]
TOP pages 0 -> -BADARG n: '0'…
CL.THROTTLE user123 15 30 60 1 -> [0 16 15 -1 2]
CL.THROTTLE user123 15 30 60 15 -> [0 16 0 -1 32]
CL.THROTTLE user123 15 30 60 -> [1 16 0 2 32]
CL.THROTTLE user123 15 30 60 17 -> [1 16 0 -1 32]
CL.THROTTLE user123 15 30 60 0 -> [0 16 0 -1 32]
CL.THROTTLE user123 -1 30 60 -> -BADARG max_burst: '-1': must be 0 to 4294967294
CL.THROTTLE user123 15 30 -> -BADARG wrong number…
CL.THROTTLE user123 15 30 315360001 -> -BADARG period: '315360001': must be 1 to 315360000
BANS -> []
BAN login ada 10m too~many -> +OK
TAKE login ada -> [0 3 0 600000 600000 "login" 946685400000]
BANS RULE login COUNT 5 -> [["login" "ada" 946684800000 946685400000 0 "too many" "resp"]]
BANS RULE pair -> []
BANS CURSOR 0 COUNT 5 -> ["0" [["login" "ada" 946684800000 946685400000 0 "too many" "resp"]]]
BANS CURSOR x -> -BADARG cursor: "x": must be one that came with a page of bans
BANS COUNT 1001 -> -BADARG COUNT: '1001': must be 1 to 1000
BANS RULE -> -BADARG 'RULE': must be RULE rule, COUNT n or CURSOR cursor
BANS SIZE 1 -> -BADARG 'SIZE': must be RULE rule, COUNT n or CURSOR cursor
BAN login ada 10 -> -BADARG duration: '10': must be a duration of 1ms to 3650d, such as 500ms, 10m, 1h30m or 7d
BAN login ada 99999d -> -BADARG duration: '99999d': must be a duration of 1ms to 3650d…
BAN nosuch ada 10m -> -NORULE …
BAN pair ada 10m -> -BADARG …
UNBAN login ada -> 1
UNBAN login ada -> 0
UNBANALL RULE -> -BADARG wrong number…
UNBANALL RULE login KEY x -> -BADARG 'KEY': must be RULE rule, PATTERN glob or NETWORK address
UNBANALL RULE login PATTERN -> -BADARG 'PATTERN': must be RULE rule, PATTERN glob or NETWORK address
UNBANALL RULE login RULE pair -> -BADARG RULE: must be given once, with a value
UNBANALL NETWORK 192.0.2.1/33 -> -BADARG network: "192.0.2.1/33": must be an address or a network such as 192.0.2.0/24
UNBANALL RULE nosuch -> -NORULE …
BAN login bob 10m -> +OK
BAN login bert 10m -> +OK
BAN pair 192.0.2.1^bob 10m -> +OK
UNBANALL rule login pattern b?b -> 1
UNBANALL PATTERN b* -> 2
UNBANALL RULE pair -> 0
UNBAN pair 192.0.2.1 bob x -> -BADARG …
HOT.LIST -> []
CHECK path /product/1 -> [1 …
CHECK path /product/1 COST 2 -> [1 …
CHECK path /x/../product/1 -> [1 …
HOT.LIST product -> [["product" "/product/1" 946684800000 946684860000 3 3 0]]
HOT.REPORT product /product/2 2 40 /x/../product/2 1 0 /product/3 1 60000 -> 2
HOT.LIST product -> [["product" "/product/2" 946684800000 946684860000 3 3 0] ["product" "/product/1" 946684800000 946684860000 3 3 0]]
HOT.REPORT nosuch /p 1 0 -> -NORULE hot rule "nosuch": unknown: must be one of product
HOT.REPORT product /p 1 -> -BADARG wrong number…
HOT.REPORT product /p 1 0 /p -> -BADARG record 2: 1 arguments: must be 3: 1 values of the key, a count and an age in ms
HOT.REPORT product /product/4 9 0 /p x 0 -> -BADARG record 2: count: 'x': must be 1 to 2147483648
HOT.REPORT product /product/4 9 0 /p 1 -1 -> -BADARG record 2: age: '-1': must be 0 to 315360000000
HOT.REPORT product /product/4 0 0 -> -BADARG record 1: count: '0': must be 1 to 2147483648
HOT.CHANGED product /product/2 -> 1
HOT.CHANGED product /product/4 -> 0
HOT.CHANGED product /product/2 x -> -BADARG …
HOT.LIST product -> [["product" "/product/2" 946684800000 946684860000 3 3 3] ["product" "/product/1" 946684800000 946684860000 3 3 0]]
HOT.REPORT product /product/2 5 0 /product/7 1 0 -> 2
HOT.REPORT product /product/2 1 0 -> 1
HOT.CACHE product 90 10 5 1 -> +OK
HOT.CACHE product 1 1 1 -> -BADARG wrong number…
HOT.CACHE product 1 1 1 x -> -BADARG stale: 'x': must be 0 to 9007199254740992
HOT.STATS product -> ["watchers" 0 "resets" 0 "updates" 0 "list_bytes" 1064 "list_dropped" 0 "rules" ["product" ["records" 5 "late" 1 "ignored" 0 "dropped" 0 "events" …
HOT.STATS nosuch -> -NORULE …
HOT.LIST nosuch -> -NORULE hot rule "nosuch": unknown: must be one of product
HOT.WATCH nosuch -> -NORULE …
SUBSCRIBE hot hot.watch:nosuch -> -NORULE …
RULES -> [["login" "limit" "…
RULES NOSUCH -> -BADARG wrong number…
SELECT 0 -> +OK
SELECT 1 -> -BADARG database '1': must be 0
CONFIG GET * -> []
CONFIG SET maxmemory 1 -> -BADARG CONFIG 'SET': must be GET…
TIME -> -ERR unknown command…
TAKE queue ada -> [1 3 2 0 1000 "queue" 0]
TAKE queue ada -> [1 3 1 0 2000 "queue" 0 1000]
PEEK queue ada -> [1 3 0 0 3000 "queue" 0 2000]
TAKE queue ada -> [1 3 0 0 3000 "queue" 0 2000]
TAKE queue ada -> [0 3 0 1000 3000 "queue" 0]
RELEASE queue ada -> -BADARG rule "queue": algorithm is leaky-bucket: must be in-flight; to give back what was counted, use REFUND
RELEASE nosuch ada -> -NORULE …
RELEASE uploads ada -> 0
RELEASE uploads ada COST 0 -> -BADARG …
TAKE uploads ada -> [1 2 1 0 30000 "uploads" 0]
TAKE uploads ada -> [1 2 0 0 30000 "uploads" 0]
TAKE uploads ada -> [0 2 0 30000 30000 "uploads" 0]
RELEASE uploads ada -> 1
TAKE uploads ada -> [1 2 0 0 30000 "uploads" 0]
RELEASE uploads ada COST 5 -> 2
RELEASE uploads ada -> 0
CL.THROTTLE resets 0 1 60 -> [0 1 0 -1 60]
CL.THROTTLE resets 0 1 60 -> [1 1 0 60 60]
DEL resets nosuch -> 1
CL.THROTTLE resets 0 1 60 -> [0 1 0 -1 60]
EXEC -> -ERR EXEC without MULTI
DISCARD -> -ERR DISCARD without MULTI
WATCH a -> -ERR unknown command 'WATCH'; keys cannot be watched for changes; each decision is atomic by itself
MULTI -> +OK
MULTI -> -ERR MULTI calls can not be nested
ADD queued ada 2 -> +QUEUED
SUM queued ada -> +QUEUED
PING -> +QUEUED
ADD queued ada -> +QUEUED
RESET login eve -> +QUEUED
TAKE nosuch ada -> +QUEUED
EXEC -> [+OK 2 +PONG +OK +OK -NORULE …
SUM queued ada -> 3
MULTI -> +OK
ADD queued ada 2 -> +QUEUED
DISCARD -> +OK
MULTI -> +OK
EXEC -> []
MULTI -> +OK
ADD queued ada 2 -> +QUEUED
ADD queued -> -BADARG wrong number…
ADD queued ada 2 -> +QUEUED
EXEC -> -EXECABORT Transaction discarded because of previous errors.
MULTI -> +OK
NOSUCH -> -ERR unknown command…
EXEC -> -EXECABORT …
MULTI -> +OK
SUBSCRIBE bans -> -ERR subscribe is not allowed in a transaction
EXEC -> -EXECABORT …
SUM queued ada -> 3
CLIENT ID -> 1
CLIENT GETNAME -> nil
CLIENT SETNAME mine -> +OK
CLIENT GETNAME -> "mine"
CLIENT SETNAME a~b -> -BADARG SETNAME 'a b': must be up to 64 visible characters of ASCII
CLIENT SETINFO LIB-NAME redis-cli -> +OK
CLIENT SETINFO COLOUR red -> -BADARG attribute 'COLOUR': must be LIB-NAME or LIB-VER
CLIENT LIST -> -BADARG CLIENT 'LIST': must be …
CLIENT NO-EVICT on -> +OK
CLIENT REPLY ON -> +OK
CLIENT REPLY OFF -> -BADARG CLIENT 'REPLY OFF': must be …
COMMAND COUNT -> 44
COMMAND INFO take nosuch -> [["take" -3 [+fast +write] 2 2 1 [+@decisions] [] [] []] nil]
COMMAND DOCS ping nosuch -> ["ping" ["summary" "Answer PONG, or the message" "since" "0.1.0" "group" "connection" "usage" "PING [message]" "role" "none" "arguments" [["name" "[message]" "type" "string" "display_text" "[message]"]]]]
AUTH x -> -ERR AUTH was called, but this server has no tokens: whoever can connect may do everything
HELLO 4 -> -BADARG protocol version: '4': must be 2 to 3
HELLO 3 NONSENSE -> -BADARG 'NONSENSE': must be HELLO [2|3 [AUTH user token] [SETNAME name]]
HELLO 3 SETNAME other -> %["server" "lately" "version" "devel" "proto" 3 "id" 1 "mode" "standalone" "role" "master" "modules" []]
RATE requests 192.0.2.1 SPAN 1s -> ,2
CLIENT GETNAME -> "other"
CONFIG GET * -> %[]
INFO server -> "# Server\r\nserver_name:lately\r\n…
RESET -> +RESET
CLIENT GETNAME -> nil
HELLO -> ["server" "lately" "version" "devel" "proto" 2 "id" 1 "mode" "standalone" "role" "master" "modules" []]
QUIT -> +OK
`

func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, true)
		c := s.dial()
		for line := range strings.Lines(conversation) {
			if line = strings.TrimSpace(line); line != "" {
				ask, want, ok := strings.Cut(line, " -> ")
				if !ok {
					t.Fatalf("%q has no ->", line)
				}
				if strings.HasSuffix(want, " …") {
					want = strings.TrimSuffix(want, " …") + " …"
				}
				c.want(ask, want)
			}
		}
		c.wantEnd()
		if e := s.Engine.Totals().Errors; e == 0 {
			t.Error("no error was counted")
		}
	})
}

// TestErrorsOfDecisions: an error instead of a decision is counted, whichever command asked for it.
func TestErrorsOfDecisions(t *testing.T) {
	s := start(t, Config{}, false)
	c := s.dial()
	for i, line := range []string{"CHECK user ada COST 0", "TAKE nosuch ada", "TAKE login ada COST x", "PEEK nosuch ada", "PEEK login ada COST x"} {
		if c.want(line, "-…"); s.Engine.Totals().Errors != uint64(i+1) {
			t.Errorf("%s: %d errors, want %d", line, s.Engine.Totals().Errors, i+1)
		}
	}
}

// TestBanRule has a rule begin a ban, and reports its end.
func TestBanRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Config{}, true).dial()
		for range 5 {
			c.want("CHECK client 192.0.2.7 path /flood", `[1 5 …`)
		}
		c.want("CHECK client 192.0.2.7 path /flood", `[0 5 0 3600000 3600000 "flood" 946688400000]`)
		c.want("BANS", `[["flood" "192.0.2.7" 946684800000 946688400000 1 "more than 5 hits in 1m" "rule"]]`)
	})
}

// A value of a key may contain the separator: UNBAN takes each value as an argument.
func TestUnbanOfTabs(t *testing.T) {
	s := start(t, Config{}, false)
	c := s.dial()
	must.Get(s.Engine.Bans().Ban("pair", []string{"192.0.2.1", "a\tb"}, time.Hour, "", ""))(t)
	c.want("UNBAN pair 192.0.2.1^a^b", "-BADARG …")
	c.want("UNBAN pair 192.0.2.1 a^c", "0")
	c.want("UNBAN pair 192.0.2.1 a^b", "1")
}

// A rule on a path holds for CHECK however the path is spelled, as it does for
// forward-auth and for logs.
func TestCheckPathSpellings(t *testing.T) {
	c := start(t, Config{}, true).dial()
	for _, path := range []string{"/flood", "/flood?x=1", "/flood#x", `/x\..\flood`, "//h/flood"} {
		c.want("CHECK client 192.0.2.77 path "+path, `[1 …`)
	}
	c.want("CHECK client 192.0.2.77 path /x/%2e%2e/flood", `[0 5 0 3600000 3600000 "flood" …`)
}
