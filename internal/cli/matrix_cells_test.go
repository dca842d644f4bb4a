package cli

import (
	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/enforce"
)

// matrixModes are the columns of the tables below, in their order.
var matrixModes = []matrixMode{
	{name: "memory", live: true},
	{name: "store", live: true, store: true},
	{name: "store-away", live: true, store: true, away: true},
	{name: "store-and-follower", live: true, store: true, feed: true}, // lately follow --addr
	{name: "serve-follow", live: true, change: func(m *matrixServer, c *server.Config) { m.follows(c) }},
	{name: "no-events", live: true, change: func(_ *matrixServer, c *server.Config) { c.KeepEvents = 0 }},
	{name: "no-flags", change: func(_ *matrixServer, c *server.Config) {
		c.RulesFiles, c.KeepEvents, c.Enforce, c.TrustedProxies = nil, 0, enforce.Targets{}, nil
	}},
	{name: "tokens", live: true, change: func(m *matrixServer, c *server.Config) {
		m.token = hostileAdmin
		m.write("token", m.token)
		c.TokenFile = m.write("tokens", "admin "+m.token+"\n")
	}},
	{name: "http-off", live: true, change: func(_ *matrixServer, c *server.Config) { c.HTTP = server.Off }},
	{name: "resp-off", live: true, change: func(_ *matrixServer, c *server.Config) { c.RESP = server.Off }},
	{name: "lately-follow", change: func(m *matrixServer, c *server.Config) { // without --addr
		c.RESP, c.HTTP, c.Enforce = server.Off, server.Off, enforce.Targets{}
		m.follows(c)
	}},
}

// matrixRefusals are the refusals of the tables below. Each is in docs/server.md.
var matrixRefusals = map[byte]string{
	'S': "the store of limits failed",
	'Y': "store: down since",
	'E': "the server keeps no events: start it with the setting keep-events, such as 64MiB",
	'N': "there are no rules",
	'H': "unknown: there are none",
	'V': "no rule counts by as many fields",
	'P': "is not a trusted proxy: if it is your proxy, start the server with --trusted-proxy",
	'C': "CrowdSec's bouncers are not answered here: must be switched on with the setting crowdsec",
	'L': "AUTH was called, but this server has no tokens: whoever can connect may do everything",
	'D': "there is no demo: the server was started without --demo",
	'I': "id: not one that this server or one of its store gave out",
	'U': "connection refused",
	'B': "follow and store: both set: must be one of them, as a store judges by its own clock",
	'T': "top: no terminal",
	'O': "resp and http: both off: must be at most one of them, unless a log is followed",
}

// matrixFiles are the files that examples name.
var matrixFiles = map[string]string{
	"rules.yaml": `version: 1
counters:
  requests: {key: client, spans: [1m, 1h]}
limits:
  - {name: login, key: user, limit: 5 per 10m}
  - {name: per-client, key: client, limit: 1000 per 1m}
  - {name: uploads, key: user, when: {path: /upload}, limit: 2 at once for 30s, algorithm: in-flight}
bans:
  - {name: flood, key: client, after: 600 hits in 1m, for: 1h}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 100 per 2s, hold: 1h}
`,
	"new.yaml":        "version: 1\nlimits:\n  - {name: per-client, key: client, limit: 1 per 1m}\n",
	"rules.test.yaml": "version: 1\ntests:\n  - name: one\n    events:\n      - {at: 0s, event: {client: 192.0.2.1}, expect: allowed}\n",
	"access.log": `192.0.2.50 - - [02/Mar/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "-"
192.0.2.50 - - [02/Mar/2026:13:55:37 +0000] "GET / HTTP/1.1" 200 1 "-" "-"
192.0.2.51 - - [02/Mar/2026:13:55:38 +0000] "GET / HTTP/1.1" 200 1 "-" "-"
`,
	"jail.local":        "[DEFAULT]\nignoreself = false\n[web]\nenabled = true\nmaxretry = 3\nfindtime = 10m\nbantime = 1h\n",
	"filter.d/web.conf": "[Definition]\nfailregex = ^failed <HOST>$\n",
	"wide.yaml":         "version: 1\nlimits:\n  - {name: per-client, key: client, limit: 9 per 1m}\n",
}

// matrixRESP has, for each mode, whether a command works ('.'), is refused (a key of matrixRefusals), or there is no RESP
// listener ('-'); then commands on one connection, and a text in the last reply.
const matrixRESP = `
.........-- CHECK client 192.0.2.1 path / -> [1 
.........-- CHECK client 192.0.2.1 path / OUTCOME 5000 -> [1 
.........-- OUTCOME client 192.0.2.1 path / status 401 -> [1 
IIIIIIIII-- OUTCOME nosuch status 401 -> [1 
......N..-- TAKE login ada -> [1 5 4 0 
......N..-- PEEK login eve -> [1 5 4 
..S...N..-- REFUND login ada -> 1
..S...N..-- CHARGE login nina COST 3 -> OK
......N..-- RESERVE login rupert COST 2 FOR 5000 -> [1 5 3 0 
IIIIIIIII-- SETTLE nosuch COST 1 -> it
..S...N..-- RELEASE uploads ada -> 0
.........-- CL.THROTTLE user123 15 30 60 -> [0 16 15 -1 2]
.........-- DEL nosuch -> 0
..S...N..-- RESET login ada -> OK
.........-- RESET -> RESET
.........-- ADD hits bob 2 -> OK
.........-- ADD pages /a; SUM pages /a -> 1
......x..-- SUM requests ada -> 0
.........-- ADD pages /b; RATE pages /b SPAN 1s -> 1
......x..-- RATE requests ada -> 0
.........-- ADD pages /a 9; TOP pages 1 -> [/a
......x..-- TOP requests 1 -> [
..S...N..-- BAN login trudy 1h because -> OK
..S...N..-- UNBAN login trudy -> 1
..S...N..-- UNBANALL RULE login PATTERN osc* -> 1
......x..-- BANS -> login mallory
......x..-- BANS RULE login COUNT 2 -> login mallory
......x..-- BANS CURSOR 0 COUNT 5 -> [0 [[login 
.........-- BANS CURSOR 0 -> [0 [
......H..-- HOT.REPORT product /product/2 2 0 -> 1
......H..-- HOT.CHANGED product /product/1 -> 1
......H..-- HOT.CACHE product 90 10 5 1 -> OK
.........-- HOT.STATS -> watchers
......H..-- HOT.STATS product -> product
......H..-- HOT.WATCH product -> hot.watch:product
......x..-- HOT.LIST -> product /product/1
......H..-- HOT.LIST product -> [
......x..-- RULES -> [login limit 
xxxxxx.xx-- RULES -> []
.........-- SUBSCRIBE bans -> [subscribe bans 1]
.........-- PSUBSCRIBE * -> [psubscribe * 1]
.........-- UNSUBSCRIBE -> [unsubscribe
.........-- PUNSUBSCRIBE -> [punsubscribe
.........-- MULTI -> OK
.........-- MULTI; ADD hits eve; SUM hits eve; EXEC -> [OK 1]
......x..-- MULTI; TAKE login frank; BANS; EXEC -> login mallory
.........-- MULTI; PING; EXEC -> [PONG]
.........-- MULTI; DISCARD -> OK
.........-- HELLO 3 -> proto
LLLLLLL.L-- AUTH hostile-admin-token-0123456789-0123456789 -> OK
.........-- PING -> PONG
.........-- QUIT -> OK
.........-- ECHO hello -> hello
.........-- SELECT 0 -> OK
.........-- CLIENT SETNAME me -> OK
.........-- COMMAND LIST -> check
.........-- INFO -> 1.2.3
.........-- CONFIG GET save -> []
`

// matrixHTTP is the same for routes: METHOD path, headers, a body in which ~ is a new line, and the beginning of the answer.
const matrixHTTP = `
........-.- POST /v1/outcome {"event":{"client":"192.0.2.1","status":"401"}} -> 200 {"allowed":true
........-.- POST /v1/outcome {"id":"","event":{"status":"401"}} -> 200 {"allowed":true
IIIIIIII-I- POST /v1/outcome {"id":"nosuch","event":{"status":"401"}} -> it
........-.- POST /v1/check {"event":{"client":"192.0.2.1"},"outcome_ms":5000} -> 200 {"allowed":true
........-.- POST /v1/check {"event":{"client":"192.0.2.1"}} -> 200 {"allowed":true
......N.-.- POST /v1/take {"rule":"login","key":"grace"} -> 200 {"allowed":true,"limit":5,"remaining":4
......N.-.- POST /v1/peek {"rule":"login","key":"heidi"} -> 200 {"allowed":true,"limit":5,"remaining":4
..S...N.-.- POST /v1/charge {"rule":"login","key":"nina","cost":2} -> 200 {}
......N.-.- POST /v1/reserve {"rule":"login","key":"peggy","cost":2} -> 200 {"allowed":true,"limit":5,"remaining":3
IIIIIIII-I- POST /v1/settle {"id":"nosuch","cost":1} -> it
..S...N.-.- POST /v1/refund {"rule":"login","key":"grace"} -> {"refunded":1}
..S...N.-.- POST /v1/release {"rule":"uploads","key":"grace"} -> {"released":0}
........-.- POST /v1/throttle {"key":"k","burst":15,"count":30,"period_ms":60000} -> {"allowed":true,"limit":16
DDDDDDDD-D- POST /v1/demo/stop {} -> it
........-.- POST /v1/feeds/open {"feed":"one","process":"p1"} -> 200 {"session":"
........-.- POST /v1/feeds/events {"feed":"one","session":"$SESSION","number":1,"events":"","state":"AA=="} -> {"events":0
..S...N.-.- POST /v1/reset {"rule":"login","key":"grace"} -> 200 {}
......P.-.- GET /v1/auth-outcome X-Forwarded-For:192.0.2.1 X-Forwarded-Uri:/ X-Original-Status:401 -> 204
......P.-.- POST /v1/auth-outcome?status=401 X-Forwarded-For:192.0.2.1 X-Forwarded-Uri:/ -> 204
........-.- GET /v1/auth-outcome?id=&status=401 -> 204
......P.-.- GET /v1/auth?outcome_ms=5000 X-Forwarded-For:192.0.2.1 X-Forwarded-Uri:/ -> 204
......P.-.- GET /v1/auth X-Forwarded-For:192.0.2.1 X-Forwarded-Uri:/ -> 204
......P.-.- POST /v1/auth X-Forwarded-For:192.0.2.1 X-Forwarded-Uri:/ -> 204
........-.- GET /v1/counters -> {"counters":[
........-.- POST /v1/counters/hits/add {"key":"ivan"} -> 20
........-.- GET /v1/counters/hits/sum?key=ivan -> {"lo":1
........-.- GET /v1/counters/hits/rate?key=ivan -> {"per_second":
........-.- GET /v1/counters/hits/top -> {"top":[
......x.-.- GET /v1/counters/requests/sum?key=192.0.2.1 -> {"lo":
......x.-.- GET /v1/counters/requests/rate?key=192.0.2.1 -> {"per_second":
......x.-.- GET /v1/counters/requests/top -> {"top":[
........-.- GET /v1/key?field=client&value=192.0.2.1 -> {"fields":["client"]
......x.-.- GET /v1/key?field=user&value=mallory -> "rule":"login"
........-.- GET /v1/explain?key=mallory -> {"values":["mallory"]
......x.-.- GET /v1/bans -> mallory
......x.-.- GET /v1/bans?rule=login&limit=2 -> mallory
......x.-.- GET /v1/bans?q=mall -> mallory
........-.- GET /v1/bans?limit=1 -> {"bans":[
..S...N.-.- POST /v1/bans {"rule":"login","key":"judy","for":"1h"} -> 201 {"rule":"login","key":
..S...N.-.- POST /v1/bans/unban {"rule":"login","key":"judy"} -> {"unbanned":1}
......C.-.- GET /v1/decisions -> 200 
......C.-.- GET /v1/decisions/stream?startup=true -> {"deleted":
........-.- GET /v1/refused -> {"refused":[
........-.- GET /v1/hot -> {"hot":[
......x.-.- GET /v1/hot?rule=product -> /product/1
......H.-.- POST /v1/hot {"rule":"product","key":"/product/6"} -> 201
......H.-.- POST /v1/hot/remove {"rule":"product","key":"/product/6"} -> {"removed":true}
......H.-.- POST /v1/hot/ignore {"rule":"product","key":"/product/7"} -> 200 {}
......H.-.- POST /v1/hot/report {"rule":"product","records":[{"key":"/product/8"}]} -> {"counted":1}
......H.-.- POST /v1/hot/cache {"rule":"product","hits":1} -> 200 {}
......H.-.- POST /v1/hot/changed {"rule":"product","key":"/product/1"} -> {"hot":true}
........-.- GET /v1/hot/stats -> {"watchers":
........-.- GET /v1/hot/watch -> "reset":true
........-.- GET /v1/rates -> 200
........-.- GET /v1/rules -> {"file":
........-.- POST /v1/rules/check Content-Type:application/yaml version: 1~ -> 200
.....EE.-.- POST /v1/rules/try {"rules":"version: 1\n"} -> "events":
........-.- POST /v1/rules/reload {} -> {"added":[
........-.- GET /v1/status -> "version":"1.2.3"
........-.- GET /v1/events -> rates
........-.- POST /v1/login {"token":"hostile-admin-token-0123456789-0123456789"} -> 200
........-.- POST /v1/logout {} -> 20
........-.- GET /metrics -> lately_build_info
........-.- GET /openapi.json -> "openapi":"3
........-.- GET /healthz -> 200 ok
..Y.....-.- GET /readyz -> 200 ok
........-.- GET / -> 200 <!doctype html
........-.- GET /console/style.css -> 200
`

// matrixCLI is the same for command lines. Those that do not end are interrupted after the answer.
const matrixCLI = `
........... serve --resp 127.0.0.1:0 --http 127.0.0.1:0 --rules $DIR/rules.yaml -> console
........... serve --resp off --http 127.0.0.1:0 --follow $DIR/access.log -> console
BBBBBBBBBBB serve --store redis://127.0.0.1:1 --follow $DIR/access.log -> it
OOOOOOOOOOO serve --resp off --http off -> it
........... follow --dry-run --rules $DIR/new.yaml $DIR/access.log -> refused
........x.x follow --addr $HTTP --name matrix $DIR/access.log -> events: 3
........... follow --addr http://127.0.0.1:1 --name edge $DIR/access.log -> no lines are read until it does
........... replay --rules $DIR/new.yaml $DIR/access.log -> 3 parsed
........... suggest $DIR/access.log -> limits
........... diff $DIR/wide.yaml $DIR/new.yaml $DIR/access.log -> newly refused: 1 event
.....EE.U.U diff --addr $HTTP $DIR/new.yaml -> newly
........... explain --rules $DIR/new.yaml --key 192.0.2.50 $DIR/access.log -> per-client
........U.U explain --addr $HTTP --key mallory -> mallory
........... test $DIR/rules.yaml -> ok
........... validate $DIR/rules.yaml -> login
........... import fail2ban --patterns $DIR $DIR -> web
........... version -> lately
........U.U status --addr $HTTP -> 1.2.3
........U.U rules --addr $HTTP -> hits
........U.U reload --addr $HTTP -> nothing has changed
........U.U check --addr $HTTP client=192.0.2.77 -> allowed
........U.U key --addr $HTTP 192.0.2.1 -> 192.0.2.1
..S...N.U.U ban --addr $HTTP --rule login --for 1h kim -> kim is banned under login
..S...V.U.U unban --addr $HTTP kim -> bans ended: 1
......x.U.U bans --addr $HTTP -> mallory
TTTTTTTTTTT top --addr $HTTP -> it
........U.U bans --addr $HTTP --json -> {
`
