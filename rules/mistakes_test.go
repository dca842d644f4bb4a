package rules

import (
	"strings"
	"testing"
)

// A mistake is a file and its errors, one a line.
type mistake struct{ name, file, want string }

var mistakes = []mistake{
	// The text.
	{"empty file", "", `rules.yaml:1:1: file: empty: must be at least "version: 1"`},
	{"only comments", "# nothing\n---\n", `rules.yaml:1:1: file: empty: must be at least "version: 1"`},
	{"null", "~\n", `rules.yaml:1:1: file: empty: must be a mapping of version, client, fields, counters, limits, bans, hot, allow`},
	{"a list", "- version: 1\n", `rules.yaml:1:1: file: a list: must be a mapping of version, client, fields, counters, limits, bans, hot, allow`},
	{"a scalar", "hello\n", `rules.yaml:1:1: file: "hello": must be a mapping of version, client, fields, counters, limits, bans, hot, allow`},
	{"a document without version", "version: 1\n---\nallow: []\n", `rules.yaml:3:1: file: missing key version: must be given, as in "version: 1"`},
	{"no UTF-8", "version: 1\n# é\xff\n", `rules.yaml:2:4: byte 0xff: must be UTF-8 text without NUL`},
	{"NUL", "version: 1\x00\n", `rules.yaml:1:11: byte 0x00: must be UTF-8 text without NUL`},
	{"open list", "version: 1\nallow: [10.0.0.0/8\n", `rules.yaml:2:8: syntax error: sequence end token ']' not found`},
	{"closed too often", "version: 1\nallow: [10.0.0.0/8]]\n", `rules.yaml:2:20: file: nested too deeply, or with a ']' or '}' too many: must be at most 16 levels`},
	{"open quote", "version: 1\nallow: \"10.0.0.0/8\n", `rules.yaml:2:8: syntax error: could not find end character of double-quoted text`},
	{"tab", "version: 1\n\tallow: []\n", `rules.yaml:2:1: syntax error: found character '\t' that cannot start any token`},
	{"two colons", "version: 1\nhot: a: b\n", `rules.yaml:2:6: syntax error: mapping value is not allowed in this context`},
	{"mistake below comments", "# a\nversion: 1 # b\n\n# c\nhot: x # d\n", `rules.yaml:5:6: hot: "x": must be a list of rules, each beginning with "- name:"`},
	{"colon in a list in braces", oneWhen("{client: [2001:db8::/32]}"), `rules.yaml:6:25: list in brackets: a ':' makes a key of the word before it: values with ':' must be quoted, as in ["2001:db8::1"]`},
	{"colons first in a list in braces", oneWhen("{client: [10.0.0.1, ::1]}"), `rules.yaml:6:31: list in brackets: a ':' makes a key of the word before it: values with ':' must be quoted, as in ["2001:db8::1"]`},
	{"anchor", "version: 1\nallow: &own [10.0.0.0/8]\n", `rules.yaml:2:8: anchors (&name): not supported: write the value where it is meant`},
	{"pattern without quotes", "version: 1\nallow: *\n", `rules.yaml:2:8: aliases (*name): not supported: write the value where it is meant, and quote a pattern that begins with '*'`},
	{"merge key", "version: 1\n<<: {allow: []}\n", `rules.yaml:2:1: merge keys (<<): not supported: write the keys where they are meant`},
	{"tag", "version: !!int 1\n", `rules.yaml:1:10: tags (!name): not supported: quote a value that begins with '!'`},
	{"directive", "%YAML 1.2\n---\nversion: 1\n", `rules.yaml:1:1: directives (%NAME): not supported: quote a value that begins with '%'`},
	{"question mark", "? version\n: 1\n", `rules.yaml:1:1: keys with '?': not supported: write "key: value"`},
	{"too deep", "version: 1\nallow: " + strings.Repeat("[", 16), `rules.yaml:2:23: file: nested too deeply, or with a ']' or '}' too many: must be at most 16 levels`},

	// The file and its sections.
	{"no version", "allow: []\n", `rules.yaml:1:1: file: missing key version: must be given, as in "version: 1"`},
	{"other version", "version: 2\n", `rules.yaml:1:10: version: "2": must be 1`},
	{"unknown section", "version: 1\nlimit: []\nextras: 1\n", `rules.yaml:2:1: file: unknown key "limit": did you mean limits?
rules.yaml:3:1: file: unknown key "extras": must be one of version, client, fields, counters, limits, bans, hot, allow`},
	{"section twice", "version: 1\nallow: []\nhot: []\nallow: []\n", `rules.yaml:4:1: file: key "allow" twice: must be given once, and line 2 has it`},
	{"limits is a mapping", "version: 1\nlimits: {name: a}\n", `rules.yaml:2:9: limits: a mapping: must be a list of rules, each beginning with "- name:"`},
	{"bans is a scalar", "version: 1\nbans: none\n", `rules.yaml:2:7: bans: "none": must be a list of rules, each beginning with "- name:"`},
	{"counters is a list", "version: 1\ncounters: [a]\n", `rules.yaml:2:11: counters: a list: must be a mapping of names, such as "requests: {key: client, spans: [1m]}"`},
	{"a rule is a scalar", "version: 1\nhot:\n  - é\n  - x\n", `rules.yaml:3:5: hot rule: "é": must be a mapping of name, key, when, threshold, hold, exact, always, never, cache
rules.yaml:4:5: hot rule: "x": must be a mapping of name, key, when, threshold, hold, exact, always, never, cache`},
	{"client", "version: 1\nclient: {ipv4: 33, ipv6: 0, ipv5: 1}\n", `rules.yaml:2:16: ipv4: "33": must be a prefix length from 1 to 32
rules.yaml:2:26: ipv6: "0": must be a prefix length from 1 to 128
rules.yaml:2:29: client: unknown key "ipv5": did you mean ipv4?`},
	{"crawlers", "version: 1\nallow: {crawlers: [google, Bing, google]}\n", `rules.yaml:2:28: crawlers: "Bing": must be apple, baidu, bing, google, yahoo or yandex
rules.yaml:2:34: crawlers: "google" twice: must be given once`},
	{"allow", "version: 1\nallow: [10.0.0.1/8, example.com, {a: b}, '']\n", `rules.yaml:2:9: allow: "10.0.0.1/8": bits beyond the prefix length: did you mean 10.0.0.0/8?
rules.yaml:2:21: allow: "example.com": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24
rules.yaml:2:34: allow: a mapping: must be a value or a list of values
rules.yaml:2:42: allow: empty: must be a value or a list of values`},

	// Fields.
	{
		"fields", "version: 1\nfields: {a: {header: X-A, cookie: sid}, b: {bearer: false}, c: {header: X A}, d: {cookie: 'a;b'}, path: {header: X-Path}, country: {header: X-C}, at: {}, e: {query: ''}, f: {headr: X}, g: {header: cookie}, h: {header: Host}, i: header}\n",
		`rules.yaml:2:10: fields: field "a": header, cookie: must be one of them
rules.yaml:2:53: bearer: false: must be true, or be left out
rules.yaml:2:61: fields: field "c": header: "X A": must be the name of a header, such as X-API-Key
rules.yaml:2:79: fields: field "d": cookie: "a;b": must be the name of a cookie, such as sid
rules.yaml:2:99: fields: field "path": must be another name, as this field is known without a declaration; of these only user can have another source
rules.yaml:2:123: fields: field "country": must be another name, as this field is known without a declaration; of these only user can have another source
rules.yaml:2:147: fields: field "at": must be another name, as commands use this one
rules.yaml:2:166: query: empty: must be a value or a list of values
rules.yaml:2:175: field f: unknown key "headr": did you mean header?
rules.yaml:2:186: fields: field "g": header: Cookie: must be one cookie, as in {cookie: sid}
rules.yaml:2:207: fields: field "h": header: Host: must be left out, as the field host has it
rules.yaml:2:229: field i: "header": must be a mapping of header, cookie, bearer, query, trusted, hash, missing`,
	},
	{"fields is a list", "version: 1\nfields: [a]\n", `rules.yaml:2:9: fields: a list: must be a mapping of names, such as "api_key: {header: X-API-Key}"`},
	{
		"bans by what a client can make up", "version: 1\nfields: {api_key: {header: X-API-Key}, session: {cookie: sid}, tenant: {header: X-Tenant, trusted: true}, account: {}}\nbans:\n" +
			"- {name: a, key: api_key, after: 1 hit in 1s, for: 1s}\n" +
			"- {name: b, key: [session, path], after: 1 hit in 1s, for: 1s}\n" +
			"- {name: c, key: [client, session], after: 1 hit in 1s, for: 1s}\n" +
			"- {name: d, key: [tenant, account], after: 1 hit in 1s, for: 1s}\n" +
			"limits:\n- {name: e, key: session | client, limit: 1 per 1s, ban: {after: 1 hit in 1s, for: 1s}}\n- {name: f, key: session, limit: 1 per 1s}\n",
		`rules.yaml:4:18: key: field "api_key": a client can make up its values, and so get others banned: must be trusted, as in "api_key: {header: X-API-Key, trusted: true}", if a proxy sets or checks it, or have client beside it: [client, api_key]
rules.yaml:5:18: key: field "session": a client can make up its values, and so get others banned: must be trusted, as in "session: {cookie: sid, trusted: true}", if a proxy sets or checks it, or have client beside it: [client, session]
rules.yaml:9:18: key: field "session": a client can make up its values, and so get others banned: must be trusted, as in "session: {cookie: sid, trusted: true}", if a proxy sets or checks it, or have client beside it: [client, session]`,
	},

	{
		"missing fields", "version: 1\nfields: {a: {cookie: a, missing: share}, b: {cookie: b, missing: deny}}\n" +
			"limits:\n- {name: a, key: a | client, limit: 1 per 1s}\n- {name: b, key: client | a, limit: 1 per 1s}\n",
		`rules.yaml:2:66: missing: "deny": must be skip, share or refuse
rules.yaml:4:18: key: field "a": events without it share one key (missing: share), so that what follows is never used: must be last`,
	},
	{
		"hashed fields", "version: 1\nfields: {api_key: {header: X-API-Key, hash: true}, session: {cookie: sid, hash: maybe}}\n" +
			"limits:\n- {name: a, key: client, when: {api_key: x}, limit: 1 per 1s}\n" +
			"- {name: c, key: api_key, limit: {by: api_key, plans: {a: 1 per 1s}, default: 1 per 1s}}\n" +
			"- {name: d, key: api_key, limit: {from: api_key, at_most: 9, default: 1 per 1s}}\n" +
			"hot:\n- {name: b, key: [path, api_key | client], threshold: 1 per 1s}\n",
		`rules.yaml:2:81: hash: "maybe": must be true or false
rules.yaml:4:33: when: field "api_key": its values are hashed, and no rule can have them: must be another field
rules.yaml:5:55: plans: field "api_key": its values are hashed, and the rules file is shown to clients of the server: must be a file, as in "plans: plans.txt"
rules.yaml:6:41: from: field "api_key": its values are hashed, and a digest is no number: must be another field
rules.yaml:8:18: key: field "api_key": its values are hashed, and programs that find hot keys would not know theirs: must be another field`,
	},
	{
		"fields that are not declared", "version: 1\nfields: {api_key: {header: X-API-Key}, session: {cooky: sid}}\n" +
			"counters: {c: {key: tenant, spans: 1m}}\n" +
			"limits:\n- {name: a, key: [clinet, apikey, session, pattern, filter | program, country], when: {statsu: 404, plan: free}, limit: 1 per 1s}\n" +
			"bans:\n- {name: b, key: client, after: 20 distinct token in 1m, for: 1s}\n",
		`rules.yaml:2:50: field session: unknown key "cooky": did you mean cookie?
rules.yaml:3:21: key: field "tenant": unknown: must be declared under fields with the place that has it, as in "tenant: {header: NAME}", or cookie, bearer or query, or "tenant: {}" if CHECK, a program or a log gives it
rules.yaml:5:19: key: field "clinet": unknown: did you mean client?
rules.yaml:5:27: key: field "apikey": unknown: did you mean api_key?
rules.yaml:5:88: when: field "statsu": unknown: did you mean status?
rules.yaml:5:101: when: field "plan": unknown: must be declared under fields with the place that has it, as in "plan: {header: NAME}", or cookie, bearer or query, or "plan: {}" if CHECK, a program or a log gives it
rules.yaml:7:33: after: distinct: field "token": unknown: must be declared under fields with the place that has it, as in "token: {header: NAME}", or cookie, bearer or query, or "token: {}" if CHECK, a program or a log gives it`,
	},

	// Names and keys.
	{"nothing in a limit", "version: 1\nlimits:\n  - {}\n", `rules.yaml:3:5: limit: missing key name: must be given, as in "name: per-client"
rules.yaml:3:5: limit: missing key key: must be given, as in "key: client"
rules.yaml:3:5: limit: missing key limit: must be given, as in "limit: 60 per 1m"`},
	{"a slip of a required key", oneLimit("nmae: x", "key: client", "limit: 1 per 1s"), `rules.yaml:3:5: limit: unknown key "nmae": did you mean name?`},
	{
		"bad names", "version: 1\nhot:\n- {name: a b, key: path, threshold: 1 per 1s}\n- {name: '', key: path, threshold: 1 per 1s}\n- {name: " +
			strings.Repeat("x", 65) + ", key: path, threshold: 1 per 1s}\n",
		`rules.yaml:3:10: name: "a b": must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:10: name: empty: must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:5:10: name: "` + strings.Repeat("x", 65) + `": must be 1 to 64 letters, digits, '-', '_' and '.'`,
	},
	{
		"name taken", "version: 1\ncounters:\n  a: {key: client, spans: 1m}\nbans:\n- {name: a, key: client, after: 1 hits in 1s, for: 1s}\nhot:\n- {name: a, key: path, threshold: 1 per 1s}\n",
		`rules.yaml:5:10: name: "a": must be unique among rules and counters, and line 3 has it
rules.yaml:7:10: name: "a": must be unique among rules and counters, and line 3 has it`,
	},
	{
		"name taken, with a condition on a field called name", "version: 1\nfields: {name: {}}\nbans:\n" +
			"- {name: a, key: client, after: 1 hits in 1s, for: 1s}\n- {name: a, key: client, when: {name: x}, after: 1 hits in 1s, for: 1s}\n",
		`rules.yaml:5:10: name: "a": must be unique among rules and counters, and line 4 has it`,
	},
	{
		"keys", oneLimit("name: x", "key: [client, Client, cost, AT, reserve, client, 'a b', [path]]", "limit: 1 per 1s"),
		`rules.yaml:4:19: key: field "Client": did you mean client?
rules.yaml:4:27: key: field "cost": must be another name, as commands use this one
rules.yaml:4:33: key: field "AT": must be another name, as commands use this one
rules.yaml:4:37: key: field "reserve": must be another name, as commands use this one
rules.yaml:4:46: key: field "client" twice: must be given once
rules.yaml:4:54: key: field "a b": must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:61: key: a list: must be a field such as client, or a list of fields`,
	},
	{
		"alternatives", oneLimit("name: x", "key: [user |, user | at, user | user, Client | user, user|host|path|agent|query|method|object|referer|status, user | client, user|client]", "limit: 1 per 1s"),
		`rules.yaml:4:11: key: field "": must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:19: key: field "at": must be another name, as commands use this one
rules.yaml:4:30: key: "user | user": must name each field once
rules.yaml:4:43: key: field "Client": did you mean client?
rules.yaml:4:58: key: 9 alternatives: must be at most 8
rules.yaml:4:130: key: field "user | client" twice: must be given once`,
	},
	{
		"networks", oneLimit("name: x", "key: [client/33, 'client/24,129', client/, user/24, 'client/24,48', client]", "limit: 1 per 1s"),
		`rules.yaml:4:11: key: client/33: must be a prefix length from 1 to 32, as in client/24 or "client/24,48", where the second is for IPv6
rules.yaml:4:22: key: client/24,129: must be a prefix length from 1 to 128, as in client/24 or "client/24,48", where the second is for IPv6
rules.yaml:4:39: key: client/: must be a prefix length from 1 to 32, as in client/24 or "client/24,48", where the second is for IPv6
rules.yaml:4:48: key: field "user/24": must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:73: key: field "client" twice: must be given once`,
	},
	{"no key fields", oneLimit("name: x", "key: []", "limit: 1 per 1s"), `rules.yaml:4:10: key: an empty list: must be a field such as client, or a list of fields`},
	{"too many key fields", oneLimit("name: x", "key: [user, host, path, agent, query, method, object, referer, status]", "limit: 1 per 1s"), `rules.yaml:4:10: key: 9 elements: must be at most 8`},

	// Limits.
	{
		"forms of limit", oneLimit("name: x", "key: client", "limit: [60, 60 in 1m, 60/m, x per 1m, 1__0 per 1m, 5 per month, 5 per 60, 5 per 100us, 99999999999999999999 per 1s]"),
		`rules.yaml:5:13: limit: "60": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
rules.yaml:5:17: limit: "60 in 1m": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
rules.yaml:5:27: limit: "60/m": "m": must be a duration such as 1m, or second, minute, hour, day, week or month
rules.yaml:5:33: limit: "x per 1m": count "x": must be a whole number, such as 60 or 10_000
rules.yaml:5:43: limit: "1__0 per 1m": count "1__0": must be a whole number, such as 60 or 10_000
rules.yaml:5:56: limit: "5 per month": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
rules.yaml:5:69: limit: "5 per 60": duration "60": no unit: did you mean 60s?
rules.yaml:5:79: limit: "5 per 100us": duration "100us": must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:5:92: limit: "99999999999999999999 per 1s": count "99999999999999999999": must be at most 18446744073709551615`,
	},
	{"limit too large", oneLimit("name: x", "key: client", "limit: 5_000_000_000 per 1m"), `rules.yaml:5:12: limit: "5_000_000_000 per 1m": must be at most 4294967295 with sliding`},
	{"limit too large for its algorithm", oneLimit("name: x", "key: client", "limit: 2_000_000 per 1m", "algorithm: exact"), `rules.yaml:5:12: limit: "2_000_000 per 1m": must be at most 65535 with exact`},
	{
		"two limits on a span", oneLimit("name: x", "key: client", "limit: [5 per 60s, 6 per 1m]"),
		`rules.yaml:5:24: limit: "6 per 1m": must have another span than "5 per 60s"`,
	},
	{
		"choices", oneLimit("name: x", "key: client", "limit: 1 per 1s", "algorithm: gkra", "count_refused: yes", "mode: off", "on_store_failure: fail"),
		`rules.yaml:6:16: algorithm: "gkra": must be sliding, exact, two-bucket, gcra, token-bucket, leaky-bucket, fixed, calendar, in-flight
rules.yaml:7:20: count_refused: "yes": must be true or false
rules.yaml:8:11: mode: "off": must be enforce or shadow
rules.yaml:9:23: on_store_failure: "fail": must be local, open or closed`,
	},
	{
		"forms of algorithms", "version: 1\nlimits:\n" +
			"- {name: a, key: client, limit: [1000 per month, 20 at once for 30s, 5 per 1s burst 2], algorithm: exact}\n" +
			"- {name: b, key: client, limit: [1000 per month, 5 per 1s burst 0, 5 per 2s burst x, 5 per 3s bursts 2, 5 per 4s burst 5_000_000_000], algorithm: gcra}\n" +
			"- {name: c, key: client, limit: [5 per 2m, 20 at once for 30s, x per day, 5 per days], algorithm: calendar}\n" +
			"- {name: d, key: client, limit: [20 per 30s, x at once for 30s, 20 at once, 20 at once for 30, 70_000 at once for 1s], algorithm: in-flight}\n",
		`rules.yaml:3:34: limit: "1000 per month": must be, for algorithm exact, "N per DURATION", such as "60 per 1m"
rules.yaml:3:50: limit: "20 at once for 30s": must be, for algorithm exact, "N per DURATION", such as "60 per 1m"
rules.yaml:3:70: limit: "5 per 1s burst 2": must be, for algorithm exact, "N per DURATION", such as "60 per 1m"
rules.yaml:4:34: limit: "1000 per month": must be, for algorithm gcra, "N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"
rules.yaml:4:50: limit: "5 per 1s burst 0": burst "0": must be 1 or more, or left out for a burst of the count
rules.yaml:4:68: limit: "5 per 2s burst x": burst "x": must be a whole number, such as 60 or 10_000
rules.yaml:4:86: limit: "5 per 3s bursts 2": must be, for algorithm gcra, "N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"
rules.yaml:4:105: limit: burst 5000000000: must be at most 4294967295
rules.yaml:5:34: limit: "5 per 2m": must be, for algorithm calendar, "N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month
rules.yaml:5:44: limit: "20 at once for 30s": must be, for algorithm calendar, "N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month
rules.yaml:5:64: limit: "x per day": count "x": must be a whole number, such as 60 or 10_000
rules.yaml:5:75: limit: "5 per days": "days": must be a duration such as 1m, or second, minute, hour, day, week or month
rules.yaml:6:34: limit: "20 per 30s": must be, for algorithm in-flight, "N at once for DURATION", such as "20 at once for 30s"
rules.yaml:6:46: limit: "x at once for 30s": count "x": must be a whole number, such as 60 or 10_000
rules.yaml:6:65: limit: "20 at once": must be, for algorithm in-flight, "N at once for DURATION", such as "20 at once for 30s"
rules.yaml:6:77: limit: "20 at once for 30": duration "30": no unit: did you mean 30s?
rules.yaml:6:96: limit: "70_000 at once for 1s": must be at most 65535 with in-flight`,
	},
	{
		"answers of what is under way", oneLimit("name: x", "key: client", "when: {not: {status: 404}}", "limit: 20 at once for 30s", "algorithm: in-flight"),
		`rules.yaml:5:11: when: must have no field of the answer (status, size, duration) with algorithm in-flight, which counts requests that have no answer yet`,
	},
	{
		"a limit before an unknown algorithm", oneLimit("name: x", "key: client", "limit: [60 per 1m burst 10, 1000 per month, 20 at once for 30s, 7]", "zone: UTC", "algorithm: token"),
		`rules.yaml:5:69: limit: "7": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
rules.yaml:7:16: algorithm: "token": must be sliding, exact, two-bucket, gcra, token-bucket, leaky-bucket, fixed, calendar, in-flight`,
	},
	{
		"two limits in a period", oneLimit("name: x", "key: client", "limit: [5 per 1d, 6 per day]", "algorithm: calendar"),
		`rules.yaml:5:23: limit: "6 per day": must have another span than "5 per 1d"`,
	},
	{
		"zones", "version: 1\nlimits:\n" +
			"- {name: a, key: client, limit: 5 per day, algorithm: calendar, zone: Europe/Atlantis}\n" +
			"- {name: b, key: client, limit: 5 per day, algorithm: calendar, zone: Local}\n" +
			"- {name: c, key: client, limit: 5 per day, algorithm: calendar, zone: ../../etc/passwd}\n" +
			"- {name: d, key: client, limit: 5 per day, algorithm: calendar, zone: '+2 h'}\n" +
			"- {name: e, key: client, limit: 5 per day, algorithm: calendar, zone: }\n" +
			"- {name: f, key: client, limit: 5 per 1d, zone: UTC}\n",
		`rules.yaml:3:71: zone: "Europe/Atlantis": not in the time zone database of this machine: must be the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:4:71: zone: "Local": must be the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:5:71: zone: "../../etc/passwd": not in the time zone database of this machine: must be the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:6:71: zone: "+2 h": must be the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:7:70: zone: empty: must be the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:8:49: zone: "UTC": must be left out with algorithm sliding, or the algorithm must be calendar`,
	},

	{
		"refused events in flight", "version: 1\nlimits:\n" +
			"- {name: a, key: client, limit: 5 at once for 1m, count_refused: true, algorithm: in-flight}\n" +
			"- {name: b, key: client, limit: 5 at once for 1m, count_refused: false, algorithm: in-flight}\n",
		`rules.yaml:3:66: count_refused: "true": must be left out with algorithm in-flight, where a refused event is never under way`,
	},

	// Limits that follow the traffic.
	{
		"nothing in adapt", oneLimit("name: x", "key: client", "limit: 1 per 1s", "adapt: {}", "algorithm: gcra"),
		`rules.yaml:6:12: adapt: missing key steps: must be given, as in "steps: [2000 below 1000 per 1s, 1000 below 5000 per 1s]"
rules.yaml:6:12: adapt: missing key above: must be given, as in "above: 500"
rules.yaml:6:12: adapt: must be left out with gcra, token-bucket and leaky-bucket, which make a rate of the limit`,
	},
	{
		"values of adapt", oneLimit("name: x", "key: client", "limit: 1 per 1s", "adapt:", "  steps: [9 below 0 per 1s, 9 below 60 per 1m, 8 below 1 per 1s, 7 under 2 per 1s, x below 2 per 1s, 9 below 2 per 1, 9 below y per 1s]",
			"  above: many", "  span: 2h", "  smooth: 25h", "  hysteresis: 1", "  spam: 1m"),
		`rules.yaml:7:15: steps: "9 below 0 per 1s": must be more traffic than in the step before, and more than none
rules.yaml:7:52: steps: "8 below 1 per 1s": must be more traffic than in the step before, and more than none
rules.yaml:7:70: steps: "7 under 2 per 1s": must be "N below COUNT per DURATION", such as "2000 below 1000 per 1s", or a list of them
rules.yaml:7:88: steps: "x below 2 per 1s": limit "x": must be a whole number, such as 60 or 10_000
rules.yaml:7:106: steps: "9 below 2 per 1": duration "1": no unit: did you mean 1s?
rules.yaml:7:123: steps: "9 below y per 1s": count "y": must be a whole number, such as 60 or 10_000
rules.yaml:8:14: above: "many": must be a whole number, such as 60 or 10_000
rules.yaml:9:13: span: "2h": must be whole milliseconds from 1s to 1h
rules.yaml:10:15: smooth: "25h": must be 1s to 24h, or left out
rules.yaml:11:19: hysteresis: no effect with smooth: must be left out
rules.yaml:11:19: hysteresis: "1": must be a share of less than 1
rules.yaml:12:7: adapt: unknown key "spam": did you mean span?`,
	},
	{
		"counts of adapt", oneLimit("name: x", "key: client", "limit: 1 per 1s", "algorithm: exact",
			"adapt: {steps: [70_000 below 1 per 1s, 65_535 below 2 per 1s], above: 80_000, span: 500ms, smooth: 1s, hysteresis: 0.1}"),
		`rules.yaml:7:21: steps: "70_000 below 1 per 1s": the limit must be at most 65535 with exact
rules.yaml:7:75: above: "80_000": must be at most 65535 with exact
rules.yaml:7:89: span: "500ms": must be whole milliseconds from 1s to 1h
rules.yaml:7:120: hysteresis: no effect with smooth: must be left out`,
	},
	{"limit without default", dataLimit("limit: {from: quota, at_most: 9}"), `rules.yaml:6:12: limit: missing key default: must be given, as in "default: 60 per 1m"`},
	{"limit without at_most", dataLimit("limit: {from: quota, default: 6 per 1s}"), `rules.yaml:6:12: limit: missing key at_most: must be given, as in "at_most: 10000 per 1m": it bounds the number and the memory of a key`},
	{"a file of plans without at_most", dataLimit("limit: {by: plan, plans: plans.txt, default: 6 per 1s}"), `rules.yaml:6:12: limit: missing key at_most: must be given, as in "at_most: 10000 per 1m": it bounds the number and the memory of a key`},
	{"limit from and by", dataLimit("limit: {from: quota, by: plan, default: 6 per 1s, at_most: 9}"), `rules.yaml:6:30: limit: from and by: must be one of them: from is a field that has the number, by one that has the name of a plan`},
	{"limit by without plans", dataLimit("limit: {by: plan, default: 6 per 1s, at_most: 9}"), `rules.yaml:6:12: limit: by and plans: must be given together, as in "by: plan, plans: {free: 60 per 1m, pro: 600 per 1m}"`},
	{
		"numbers of a limit", dataLimit("limit: {by: plan, plans: {a: 60 per 1h, b: 0, c: 20, d: x, e: 3 at once for 1s}, default: 6 per 1s, at_most: 10}"),
		`rules.yaml:6:34: plan a: "60 per 1h": must have the span and the burst of the default, as a key has one window
rules.yaml:6:48: plan b: "0": must be 1 or more
rules.yaml:6:54: plan c: "20": must be at most 10, which is at_most
rules.yaml:6:61: plan d: "x": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
rules.yaml:6:67: plan e: "3 at once for 1s": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"`,
	},
	{"at_most below the default", dataLimit("limit: {default: 6 per 1s, at_most: 5 per 1s}"), `rules.yaml:6:41: at_most: "5 per 1s": must be at least the limit, 6`},
	{"at_most of exact", dataLimit("limit: {default: 6 per 1s, at_most: 65536}", "algorithm: exact"), `rules.yaml:6:41: at_most: "65536": limit: 65536: must be at most 65535 with exact`},
	{"several defaults", dataLimit("limit: {default: [6 per 1s, 7 per 1m], at_most: 9}"), `rules.yaml:6:22: default: 2 limits: must be one`},
	{"a default of 0 in a bucket", dataLimit("limit: {default: 0 per 1s, at_most: 9}", "algorithm: gcra"), `rules.yaml:6:22: limit: "0 per 1s": must be 1 or more with gcra where events bring their limit`},
	{"plans are a list", dataLimit("limit: {by: plan, plans: [a], default: 6 per 1s, at_most: 9}"), `rules.yaml:6:30: plans: a list: must be a mapping of plans, such as "{free: 60 per 1m, pro: 600 per 1m}", or a file`},
	{"limit from data and adapt", dataLimit("limit: {default: 6 per 1s, at_most: 9}", "adapt: {steps: 9 below 1 per 1s, above: 1}"), `rules.yaml:7:12: adapt: must be left out with a limit that comes with the request`},
	{"a misspelled key of a limit", dataLimit("limit: {default: 6 per 1s, atmost: 9}"), `rules.yaml:6:32: limit: unknown key "atmost": did you mean at_most?`},
	{
		"a limit that clients choose", "version: 1\nfields: {plan: {header: X-Plan}, tenant: {header: X-Tenant}}\nlimits:\n" +
			"- {name: a, key: client, limit: {by: plan, plans: {pro: 9}, default: 6 per 1s}}\n" +
			"- {name: b, key: client, limit: {from: plan, default: 6 per 1s, at_most: 9}}\n" +
			"- {name: c, key: tenant, limit: {by: tenant, plans: {pro: 9}, default: 6 per 1s}}\n",
		`rules.yaml:4:38: by: field "plan": a client can make up its values, and so choose its limit: must be trusted, as in "plan: {header: X-Plan, trusted: true}", if a proxy sets or checks it
rules.yaml:5:40: from: field "plan": a client can make up its values, and so choose its limit: must be trusted, as in "plan: {header: X-Plan, trusted: true}", if a proxy sets or checks it`,
	},
	{"adapt is a list", oneLimit("name: x", "key: client", "limit: 1 per 1s", "adapt: [1]"), `rules.yaml:6:12: adapt: a list: must be a mapping of steps, above, span, smooth, hysteresis`},
	{"booleans in short", oneLimit("name: x", "key: client", "limit: 1 per 1s", "count_refused: 1"), `rules.yaml:6:20: count_refused: "1": must be true or false`},
	{
		"choices left empty", oneLimit("name: x", "key: client", "limit: 1 per 1s", "algorithm: ''", "mode:"),
		`rules.yaml:6:16: algorithm: empty: must be left out for the default
rules.yaml:7:11: mode: empty: must be enforce or shadow`,
	},

	// Bans.
	{
		"nothing in a ban", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {}"),
		`rules.yaml:6:10: ban: missing key after: must be given, as in "after: 20 refusals in 5m"
rules.yaml:6:10: ban: missing key for: must be given, as in "for: 10m"`,
	},
	{
		"forms of ban", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 20 per 5m, for: 10, factor: 0.5, max: forever, remember: 0s}"),
		`rules.yaml:6:18: after: "20 per 5m": must be "N hits in DURATION", "N refusals in DURATION" or "N distinct FIELD in DURATION", such as "600 hits in 1m"
rules.yaml:6:34: for: "10": no unit: did you mean 10s?
rules.yaml:6:46: factor: "0.5": must be a number from 1 to 1000
rules.yaml:6:56: max: "forever": must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:6:75: remember: "0s": must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d`,
	},
	{
		"what a ban counts", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 20 errors in 5m, for: 10m}"),
		`rules.yaml:6:18: after: "20 errors in 5m": "errors": must be hits, refusals or distinct FIELD`,
	},
	{
		"distinct what", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 20 distinct in 5m, for: 10m}"),
		`rules.yaml:6:18: after: "20 distinct in 5m": distinct: must be followed by a field, such as "20 distinct user in 10m"`,
	},
	{
		"distinct of the key", oneLimit("name: x", "key: [client, user]", "limit: 1 per 1s", "ban: {after: 20 distinct user in 5m, for: 10m}"),
		`rules.yaml:6:18: after: distinct user: the key has one value of it: must be another field`,
	},
	{
		"ban after too many", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 2_000_000 hits in 5m, for: 10m}"),
		`rules.yaml:6:18: after: "2_000_000 hits in 5m": must be at most 65535`,
	},
	{
		"max below for", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 1 hits in 1s, for: 10m, factor: 2, max: 5m}"),
		`rules.yaml:6:58: max: "5m": must be at least the length of the first ban, 10m`,
	},
	{
		"without factor", oneLimit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 1 hits in 1s, for: 10m, max: 1h, remember: 7d}"),
		`rules.yaml:6:47: max: no effect on bans of one length: must be left out, or have "factor: 2" beside it
rules.yaml:6:61: remember: no effect on bans of one length: must be left out, or have "factor: 2" beside it`,
	},
	{
		"lists of bans", "version: 1\nbans:\n" +
			"- {name: a, key: client, after: 1 hit in 1s, for: [5m, 1], max: 1h}\n" +
			"- {name: b, key: client, after: 1 hit in 1s, for: [5m, 1h], factor: 2}\n" +
			"- {name: c, key: client, after: 1 hit in 1s, for: []}\n" +
			"- {name: d, key: client, after: 1 hit in 1s, for: [10m, 5m], max: 5m}\n" +
			"- {name: e, key: client, after: 1 hit in 1s, for: [" + strings.Repeat("5m, ", 65) + "]}\n",
		`rules.yaml:3:56: for: "1": no unit: did you mean 1s?
rules.yaml:4:69: factor: "2": must be left out with a list of lengths, which says how long each ban is
rules.yaml:5:51: for: an empty list: must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:6:67: max: "5m": must be at least the length of the first ban, 10m
rules.yaml:7:51: for: 65 elements: must be at most 64`,
	},
	{
		"jitter and extend", "version: 1\nbans:\n" +
			"- {name: a, key: client, after: 1 hit in 1s, for: 5m, jitter: 1.1}\n" +
			"- {name: b, key: client, after: 1 hit in 1s, for: 5m, jitter: -0.1, extend: 1}\n" +
			"- {name: c, key: client, after: 1 hit in 1s, for: 10m, jitter: 20%, max: 1h}\n" +
			"- {name: d, key: client, after: 1 hit in 1s, for: 10m, jitter: 0.5, max: 14m}\n" +
			"- {name: e, key: client, after: 1 hit in 1s, for: 3650d, jitter: 0.5}\n",
		`rules.yaml:3:63: jitter: "1.1": must be a share from 0 to 1, such as 0.2
rules.yaml:4:63: jitter: "-0.1": must be a share from 0 to 1, such as 0.2
rules.yaml:4:77: extend: "1": must be true or false
rules.yaml:5:64: jitter: "20%": must be a share from 0 to 1, such as 0.2
rules.yaml:6:64: jitter: "0.5": must be less, as the first ban could be longer than the longest, 14m
rules.yaml:7:66: jitter: "0.5": must be less, as the first ban could be longer than the longest, 87600h`,
	},
	{
		"factors", "version: 1\nbans:\n- {name: a, key: client, after: 1 hits in 1s, for: 1m, factor: -2}\n- {name: b, key: client, after: 1 hits in 1s, for: 1m, factor: .inf}\n- {name: c, key: client, after: 1 hits in 1s, for: 1m, factor: 1001}\n- {name: d, key: client, after: 1 hits in 1s, for: 1m, factor: 0}\n",
		`rules.yaml:3:64: factor: "-2": must be a number from 1 to 1000, such as 2 or 1.5
rules.yaml:4:64: factor: ".inf": must be a number from 1 to 1000, such as 2 or 1.5
rules.yaml:5:64: factor: "1001": must be a number from 1 to 1000
rules.yaml:6:64: factor: "0": must be a number from 1 to 1000, such as 2 or 1.5`,
	},
	{
		"ban of refusals without a limit", "version: 1\nbans:\n- {name: a, key: client, after: 1 refusals in 1s, for: 1m}\n",
		`rules.yaml:3:33: after: refusals: must be "N hits in DURATION" or "N distinct FIELD in DURATION" here, as this rule has no limit that refuses; or put the ban under a limit`,
	},
	{
		"limit in bans", "version: 1\nbans:\n- {name: a, key: client, after: 1 hits in 1s, for: 1m, limit: 1 per 1s}\n",
		`rules.yaml:3:56: ban: unknown key "limit": must be one of name, key, when, mode, on_store_failure, after, for, factor, max, jitter, extend, remember`,
	},

	// Hot keys and counters.
	{
		"thresholds", "version: 1\nhot:\n- {name: a, key: path, threshold: 500}\n- {name: b, key: path, threshold: 0 per 1s}\n- {name: c, key: path, threshold: 2_000_000_000 per 1s, hold: -1s}\n",
		`rules.yaml:3:35: threshold: "500": must be "N per DURATION", such as "60 per 1m"
rules.yaml:4:35: threshold: "0 per 1s": must be 1 to 1073741824
rules.yaml:5:35: threshold: "2_000_000_000 per 1s": must be 1 to 1073741824
rules.yaml:5:63: hold: "-1s": must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d`,
	},
	{
		"lists of hot keys", "version: 1\nhot:\n- {name: a, key: path, threshold: 70_000 per 1s, exact: true, always: /a, never: [[/a, b]]}\n- {name: b, key: [host, path], threshold: 1 per 1s, always: [[a, /b], c], never: [[a, /b]]}\n",
		`rules.yaml:3:35: threshold: "70_000 per 1s": must be at most 65535 with exact
rules.yaml:3:71: always: "/a": must be a list of keys
rules.yaml:3:83: never: number of key values: 2: must be 1: path
rules.yaml:4:71: always: number of key values: 1: must be 2: host, path
rules.yaml:4:82: never: must have no key that is in always, too`,
	},
	{
		"caches", "version: 1\nhot:\n- {name: a, key: path, threshold: 1 per 1s, cache: {}}\n- {name: b, key: path, threshold: 1 per 1s, cache: 10s}\n" +
			"- {name: c, key: path, threshold: 1 per 1s, cache: {ttl: 1m, max_age: 1s, max_bytes: 5MB}}\n- {name: d, key: path, threshold: 1 per 1s, cache: {ttl: 1s, entries: 5}}\n",
		`rules.yaml:3:52: cache: missing key ttl: must be given, as in "ttl: 10s"
rules.yaml:4:52: cache: "10s": must be a mapping of ttl, max_age, max_bytes
rules.yaml:5:71: max_age: "1s": must be the ttl, 1m, or longer, up to 87600h
rules.yaml:5:86: max_bytes: "5MB": must be a number of bytes such as 268435456, 256MiB or 2GiB
rules.yaml:6:62: cache: unknown key "entries": must be one of ttl, max_age, max_bytes`,
	},
	{
		"counters", "version: 1\ncounters:\n  a: {key: client}\n  b c: {key: client, spans: [1m, 60s, 1]}\n  d: 5\n  e: {key: client, spans: []}\n",
		`rules.yaml:3:6: counter: missing key spans: must be given, as in "spans: [1s, 1m, 1h, 24h]"
rules.yaml:4:3: name: "b c": must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:34: spans: 1m twice: must be given once
rules.yaml:4:39: spans: "1": no unit: did you mean 1s?
rules.yaml:5:6: counter: "5": must be a mapping of key, spans, when
rules.yaml:6:27: spans: an empty list: must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d`,
	},
	{
		"two bad spans", "version: 1\ncounters:\n  a: {key: client, spans: [x, y]}\n",
		`rules.yaml:3:28: spans: "x": must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:3:31: spans: "y": must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d`,
	},
	{
		"too many spans", "version: 1\ncounters:\n  a: {key: client, spans: [1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s, 13s, 14s, 15s, 16s, 17s]}\n",
		`rules.yaml:3:27: spans: 17 elements: must be at most 16`,
	},

	// Conditions.
	{
		"values of when", oneWhen("{method: [], path: [login, /ok], status: [4040, 600-500, 6xx, 404], client: example.com, agent: ''}"),
		`rules.yaml:6:20: method: an empty list: must be a value or a list of values
rules.yaml:6:31: path: "login": must be a pattern that begins with '/' or '*'
rules.yaml:6:53: status: "4040": must be a status such as 404, a class such as 5xx or a range such as 500-504, up to 599
rules.yaml:6:59: status: "600-500": must be a status such as 404, a class such as 5xx or a range such as 500-504, up to 599
rules.yaml:6:68: status: "6xx": must be a status such as 404, a class such as 5xx or a range such as 500-504, up to 599
rules.yaml:6:87: client: "example.com": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24
rules.yaml:6:107: agent: empty: must be a value or a list of values`,
	},
	{
		"fields of when", oneWhen("{Path: /x, at: 1, a/b: c, method: {a: b}}"),
		`rules.yaml:6:12: when: field "Path": did you mean path?
rules.yaml:6:22: when: field "at": must be another name, as commands use this one
rules.yaml:6:29: when: field "a/b": must be 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:6:45: method: a mapping: must be a value or a list of values`,
	},
	{"empty when", oneWhen("{}"), `rules.yaml:6:11: when: empty: must be a mapping of fields and their values, or a list of such mappings, or be left out`},
	{"when is a scalar", oneWhen("POST"), `rules.yaml:6:11: when: "POST": must be a mapping of fields and their values, or a list of such mappings`},
	{"when is an empty list", oneWhen("[]"), `rules.yaml:6:11: when: an empty list: must be a mapping of fields and their values, or a list of such mappings`},
	{
		"mistakes in alternatives", oneWhen("[{path: login}, POST, {not: [{status: 700}, {}]}]"),
		`rules.yaml:6:19: path: "login": must be a pattern that begins with '/' or '*'
rules.yaml:6:27: when: "POST": must be a mapping of fields and their values, or a list of such mappings
rules.yaml:6:49: status: "700": must be a status such as 404, a class such as 5xx or a range such as 500-504, up to 599
rules.yaml:6:55: not: empty: must be a mapping of fields and their values, or a list of such mappings, or be left out`,
	},
	{"not in not", oneWhen("{not: {not: {path: /x}}}"), `rules.yaml:6:18: not: "not": must be directly under when, with the conditions that must not hold`},
	{"a field called not", oneLimit("name: x", "key: Not", "limit: 1 per 1s"), `rules.yaml:4:10: key: "Not": must be directly under when, with the conditions that must not hold`},
	{"when names a field twice", oneWhen("{path: /a, path: /b}"), `rules.yaml:6:22: when: key "path" twice: must be given once, and line 6 has it`},
}

// oneLimit returns a file with one limit, made of lines; the first is in line 3.
func oneLimit(lines ...string) string {
	return "version: 1\nlimits:\n  - " + strings.Join(lines, "\n    ") + "\n"
}

// dataLimit is oneLimit, of clients, with the fields quota and plan.
func dataLimit(lines ...string) string {
	return strings.Replace(oneLimit(append([]string{"name: x", "key: client"}, lines...)...), "\n", "\nfields: {quota: {}, plan: {}}\n", 1)
}

// oneWhen returns a file with one limit whose condition is in line 6 from column
// 11 on.
func oneWhen(condition string) string {
	return oneLimit("name: x", "key: client", "limit: 1 per 1s", "when: "+condition)
}

func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			f, err := Parse("rules.yaml", []byte(m.file))
			checkResult(t, f, err)
			if err == nil {
				t.Fatalf("the file was taken; want\n%s", m.want)
			}
			if err.Error() != m.want {
				t.Errorf("got\n%v\nwant\n%s", err, m.want)
			}
		})
	}
}

// TestMistakesWithCRLF checks that positions do not depend on the line ends.
func TestMistakesWithCRLF(t *testing.T) {
	for _, m := range mistakes {
		_, err := Parse("rules.yaml", []byte(strings.ReplaceAll(m.file, "\n", "\r\n")))
		if err == nil || err.Error() != m.want {
			t.Errorf("%s: got\n%v\nwant\n%s", m.name, err, m.want)
		}
	}
}
