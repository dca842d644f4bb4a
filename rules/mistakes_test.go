package rules

import (
	"strings"
	"testing"
)

// A mistake is a file and all that is to be said of it, one error a line.
type mistake struct{ name, file, want string }

var mistakes = []mistake{
	// The text.
	{"empty file", "", `rules.yaml:1:1: the file is empty; the least that is allowed is "version: 1"`},
	{"only comments", "# nothing\n---\n", `rules.yaml:1:1: the file is empty; the least that is allowed is "version: 1"`},
	{"null", "~\n", `rules.yaml:1:1: the file is empty; allowed is a mapping of version, client, counters, limits, bans, hot, allow`},
	{"a list", "- version: 1\n", `rules.yaml:1:1: the file is a list; allowed is a mapping of version, client, counters, limits, bans, hot, allow`},
	{"a scalar", "hello\n", `rules.yaml:1:1: the file is "hello"; allowed is a mapping of version, client, counters, limits, bans, hot, allow`},
	{"two documents", "version: 1\n---\nversion: 1\n", `rules.yaml:3:1: second document: must be one document in a file`},
	{"no UTF-8", "version: 1\n# é\xff\n", `rules.yaml:2:4: byte 0xff is no UTF-8 text; allowed is a file in UTF-8`},
	{"NUL", "version: 1\x00\n", `rules.yaml:1:11: there is a NUL byte; allowed is text`},
	{"open list", "version: 1\nallow: [10.0.0.0/8\n", `rules.yaml:2:8: syntax error: sequence end token ']' not found`},
	{"closed too often", "version: 1\nallow: [10.0.0.0/8]]\n", `rules.yaml:2:20: the file is nested too deeply, or has a ']' or '}' too many`},
	{"open quote", "version: 1\nallow: \"10.0.0.0/8\n", `rules.yaml:2:8: syntax error: could not find end character of double-quoted text`},
	{"tab", "version: 1\n\tallow: []\n", `rules.yaml:2:1: syntax error: found character '\t' that cannot start any token`},
	{"two colons", "version: 1\nhot: a: b\n", `rules.yaml:2:6: syntax error: mapping value is not allowed in this context`},
	{"mistake below comments", "# a\nversion: 1 # b\n\n# c\nhot: x # d\n", `rules.yaml:5:6: hot is "x"; allowed is a list of rules, each beginning with "- name:"`},
	{"colon in a list in braces", when("{client: [2001:db8::/32]}"), `rules.yaml:6:25: a ':' in a list in brackets makes a key of what is before it; quote a value that has one, as in ["2001:db8::1"]`},
	{"colons first in a list in braces", when("{client: [10.0.0.1, ::1]}"), `rules.yaml:6:31: a ':' in a list in brackets makes a key of what is before it; quote a value that has one, as in ["2001:db8::1"]`},
	{"anchor", "version: 1\nallow: &own [10.0.0.0/8]\n", `rules.yaml:2:8: anchors (&name) are not supported: write the value where it is meant`},
	{"pattern without quotes", "version: 1\nallow: *\n", `rules.yaml:2:8: aliases (*name) are not supported: write the value where it is meant, and quote a pattern that begins with '*'`},
	{"merge key", "version: 1\n<<: {allow: []}\n", `rules.yaml:2:1: merge keys (<<) are not supported: write the keys where they are meant`},
	{"tag", "version: !!int 1\n", `rules.yaml:1:10: tags (!name) are not supported: quote a value that begins with '!'`},
	{"directive", "%YAML 1.2\n---\nversion: 1\n", `rules.yaml:1:1: directives (%NAME) are not supported: quote a value that begins with '%'`},
	{"question mark", "? version\n: 1\n", `rules.yaml:1:1: keys with '?' are not supported: write "key: value"`},
	{"too deep", "version: 1\nallow: " + strings.Repeat("[", 16), `rules.yaml:2:23: the file is nested too deeply, or has a ']' or '}' too many`},

	// The file and its sections.
	{"no version", "allow: []\n", `rules.yaml:1:1: the file has no version; write "version: 1" at the top`},
	{"other version", "version: 2\n", `rules.yaml:1:10: version is "2"; allowed is 1`},
	{"unknown section", "version: 1\nlimit: []\nextras: 1\n", `rules.yaml:2:1: the file has the unknown key "limit"; did you mean limits?
rules.yaml:3:1: the file has the unknown key "extras"; allowed is version, client, counters, limits, bans, hot, allow`},
	{"section twice", "version: 1\nallow: []\nhot: []\nallow: []\n", `rules.yaml:4:1: the file has the key "allow" twice; the first is in line 2`},
	{"limits is a mapping", "version: 1\nlimits: {name: a}\n", `rules.yaml:2:9: limits is a mapping; allowed is a list of rules, each beginning with "- name:"`},
	{"bans is a scalar", "version: 1\nbans: none\n", `rules.yaml:2:7: bans is "none"; allowed is a list of rules, each beginning with "- name:"`},
	{"counters is a list", "version: 1\ncounters: [a]\n", `rules.yaml:2:11: counters is a list; allowed is a mapping of names, such as "requests: {key: client, spans: [1m]}"`},
	{"a rule is a scalar", "version: 1\nhot:\n  - é\n  - x\n", `rules.yaml:3:5: a rule of hot is "é"; allowed is a mapping of name, key, when, threshold, hold
rules.yaml:4:5: a rule of hot is "x"; allowed is a mapping of name, key, when, threshold, hold`},
	{"client", "version: 1\nclient: {ipv4: 33, ipv6: 0, ipv5: 1}\n", `rules.yaml:2:16: ipv4 is "33"; allowed is a prefix length from 1 to 32
rules.yaml:2:26: ipv6 is "0"; allowed is a prefix length from 1 to 128
rules.yaml:2:29: client has the unknown key "ipv5"; did you mean ipv4?`},
	{"allow", "version: 1\nallow: [10.0.0.1/8, example.com, {a: b}, '']\n", `rules.yaml:2:9: in allow, "10.0.0.1/8" has bits beyond its length; did you mean 10.0.0.0/8?
rules.yaml:2:21: in allow, "example.com" is no address; allowed is an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24
rules.yaml:2:34: allow is a mapping; allowed is an address, a prefix, or a list of them
rules.yaml:2:42: allow is empty; allowed is an address, a prefix, or a list of them`},

	// Names and keys.
	{"nothing in a limit", "version: 1\nlimits:\n  - {}\n", `rules.yaml:3:5: a limit has no name; write "name: per-client"
rules.yaml:3:5: a limit has no key; write "key: client", or a list of fields
rules.yaml:3:5: a limit has no limit; write "limit: 60 per 1m"`},
	{"a slip of a required key", limit("nmae: x", "key: client", "limit: 1 per 1s"), `rules.yaml:3:5: a limit has the unknown key "nmae"; did you mean name?`},
	{
		"bad names", "version: 1\nhot:\n- {name: a b, key: path, threshold: 1 per 1s}\n- {name: '', key: path, threshold: 1 per 1s}\n- {name: " +
			strings.Repeat("x", 65) + ", key: path, threshold: 1 per 1s}\n",
		`rules.yaml:3:10: name is "a b"; allowed is 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:10: name is empty; allowed is a name of letters, digits, '-', '_' and '.'
rules.yaml:5:10: name is "` + strings.Repeat("x", 65) + `"; allowed is 1 to 64 letters, digits, '-', '_' and '.'`,
	},
	{
		"name taken", "version: 1\ncounters:\n  a: {key: client, spans: 1m}\nbans:\n- {name: a, key: client, after: 1 hits in 1s, for: 1s}\nhot:\n- {name: a, key: path, threshold: 1 per 1s}\n",
		`rules.yaml:5:10: name is "a", which is taken in line 3; allowed is a name of its own for each rule and counter
rules.yaml:7:10: name is "a", which is taken in line 3; allowed is a name of its own for each rule and counter`,
	},
	{
		"keys", limit("name: x", "key: [client, Client, cost, AT, client, 'a b', [path]]", "limit: 1 per 1s"),
		`rules.yaml:4:19: key has the field "Client"; did you mean client?
rules.yaml:4:27: key has the field "cost", a word that commands use; allowed is any other name
rules.yaml:4:33: key has the field "AT", a word that commands use; allowed is any other name
rules.yaml:4:37: key has the field "client" twice; allowed is each field once
rules.yaml:4:45: key has the field "a b"; allowed is 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:52: key is a list; allowed is a field such as client, or a list of fields`,
	},
	{
		"alternatives", limit("name: x", "key: [user |, user | at, user | user, Client | user, a|b|c|d|e|f|g|h|i, user | client, user|client]", "limit: 1 per 1s"),
		`rules.yaml:4:11: key has the field ""; allowed is 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:19: key has the field "at", a word that commands use; allowed is any other name
rules.yaml:4:30: key is "user | user": must name each field once
rules.yaml:4:43: key has the field "Client"; did you mean client?
rules.yaml:4:58: key is "a|b|c|d|e|f|g|h|i": must have at most 8 alternatives
rules.yaml:4:92: key has the field "user | client" twice; allowed is each field once`,
	},
	{"no key fields", limit("name: x", "key: []", "limit: 1 per 1s"), `rules.yaml:4:10: key is an empty list; allowed is a field such as client, or a list of fields`},
	{"too many key fields", limit("name: x", "key: [a, b, c, d, e, f, g, h, i]", "limit: 1 per 1s"), `rules.yaml:4:10: key has 9 fields; allowed is at most 8`},

	// Limits.
	{
		"forms of limit", limit("name: x", "key: client", "limit: [60, 60 in 1m, 60/m, x per 1m, 1__0 per 1m, 5 per minute, 5 per 60, 5 per 100us, 99999999999999999999 per 1s]"),
		`rules.yaml:5:13: limit is "60"; allowed is "N per DURATION", such as "60 per 1m"
rules.yaml:5:17: limit is "60 in 1m"; allowed is "N per DURATION", such as "60 per 1m"
rules.yaml:5:27: limit is "60/m"; allowed is "N per DURATION", such as "60 per 1m"
rules.yaml:5:33: limit is "x per 1m"; its count is "x"; allowed is a whole number, such as 60 or 10_000
rules.yaml:5:43: limit is "1__0 per 1m"; its count is "1__0"; allowed is a whole number, such as 60 or 10_000
rules.yaml:5:56: limit is "5 per minute", a form of algorithm calendar; allowed for sliding is "N per DURATION", such as "60 per 1m"
rules.yaml:5:70: limit is "5 per 60"; its duration is "60", which has no unit; write "60s"
rules.yaml:5:80: limit is "5 per 100us"; its duration is "100us"; allowed is whole milliseconds from 1ms to 3650d
rules.yaml:5:93: limit is "99999999999999999999 per 1s"; its count is "99999999999999999999"; the count is too large`,
	},
	{"limit too large", limit("name: x", "key: client", "limit: 5_000_000_000 per 1m"), `rules.yaml:5:12: limit is 5000000000; algorithm sliding allows at most 4294967295`},
	{"limit too large for its algorithm", limit("name: x", "key: client", "limit: 2_000_000 per 1m", "algorithm: exact"), `rules.yaml:5:12: limit is 2000000; algorithm exact allows at most 65535`},
	{
		"two limits on a span", limit("name: x", "key: client", "limit: [5 per 60s, 6 per 1m]"),
		`rules.yaml:5:24: limit is "6 per 1m", and "5 per 60s" is about the same span; allowed is one limit for each span`,
	},
	{
		"choices", limit("name: x", "key: client", "limit: 1 per 1s", "algorithm: gkra", "count_refused: yes", "mode: off", "on_store_failure: fail"),
		`rules.yaml:6:16: algorithm is "gkra"; allowed is sliding, exact, weighted, two-bucket, gcra, token-bucket, leaky-bucket, fixed, calendar, in-flight
rules.yaml:7:20: count_refused is "yes"; allowed is true or false
rules.yaml:8:11: mode is "off"; allowed is enforce or shadow
rules.yaml:9:23: on_store_failure is "fail"; allowed is local, open, closed`,
	},
	{
		"forms of algorithms", "version: 1\nlimits:\n" +
			"- {name: a, key: client, limit: [1000 per day, 20 at once for 30s, 5 per 1s burst 2], algorithm: exact}\n" +
			"- {name: b, key: client, limit: [1000 per day, 5 per 1s burst 0, 5 per 2s burst x, 5 per 3s bursts 2, 5 per 4s burst 5_000_000_000], algorithm: gcra}\n" +
			"- {name: c, key: client, limit: [5 per 2m, 20 at once for 30s, x per day, 5 per days], algorithm: calendar}\n" +
			"- {name: d, key: client, limit: [20 per 30s, x at once for 30s, 20 at once, 20 at once for 30, 70_000 at once for 1s], algorithm: in-flight}\n",
		`rules.yaml:3:34: limit is "1000 per day", a form of algorithm calendar; allowed for exact is "N per DURATION", such as "60 per 1m"
rules.yaml:3:48: limit is "20 at once for 30s", a form of algorithm in-flight; allowed for exact is "N per DURATION", such as "60 per 1m"
rules.yaml:3:68: limit is "5 per 1s burst 2", a form of algorithms gcra, token-bucket and leaky-bucket; allowed for exact is "N per DURATION", such as "60 per 1m"
rules.yaml:4:34: limit is "1000 per day", a form of algorithm calendar; allowed for gcra is "N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"
rules.yaml:4:48: limit is "5 per 1s burst 0"; its burst is "0"; allowed is 1 or more, or no burst, which is one as large as the count
rules.yaml:4:66: limit is "5 per 2s burst x"; its burst is "x"; allowed is a whole number, such as 60 or 10_000
rules.yaml:4:84: limit is "5 per 3s bursts 2"; allowed is "N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"
rules.yaml:4:103: burst is 5000000000; allowed is at most 4294967295
rules.yaml:5:34: limit is "5 per 2m"; allowed is "N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month
rules.yaml:5:44: limit is "20 at once for 30s", a form of algorithm in-flight; allowed for calendar is "N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month
rules.yaml:5:64: limit is "x per day"; its count is "x"; allowed is a whole number, such as 60 or 10_000
rules.yaml:5:75: limit is "5 per days"; its duration is "days"; allowed is a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:6:34: limit is "20 per 30s"; allowed is "N at once for DURATION", such as "20 at once for 30s"
rules.yaml:6:46: limit is "x at once for 30s"; its count is "x"; allowed is a whole number, such as 60 or 10_000
rules.yaml:6:65: limit is "20 at once"; allowed is "N at once for DURATION", such as "20 at once for 30s"
rules.yaml:6:77: limit is "20 at once for 30"; its duration is "30", which has no unit; write "30s"
rules.yaml:6:96: limit is 70000; algorithm in-flight allows at most 65535`,
	},
	{
		"a limit before an unknown algorithm", limit("name: x", "key: client", "limit: [60 per 1m burst 10, 1000 per day, 20 at once for 30s, 7]", "zone: UTC", "algorithm: token"),
		`rules.yaml:5:67: limit is "7"; allowed is "N per DURATION", such as "60 per 1m"
rules.yaml:7:16: algorithm is "token"; allowed is sliding, exact, weighted, two-bucket, gcra, token-bucket, leaky-bucket, fixed, calendar, in-flight`,
	},
	{
		"two limits in a period", limit("name: x", "key: client", "limit: [5 per 1d, 6 per day]", "algorithm: calendar"),
		`rules.yaml:5:23: limit is "6 per day", and "5 per 1d" is about the same span; allowed is one limit for each span`,
	},
	{
		"zones", "version: 1\nlimits:\n" +
			"- {name: a, key: client, limit: 5 per day, algorithm: calendar, zone: Europe/Atlantis}\n" +
			"- {name: b, key: client, limit: 5 per day, algorithm: calendar, zone: Local}\n" +
			"- {name: c, key: client, limit: 5 per day, algorithm: calendar, zone: ../../etc/passwd}\n" +
			"- {name: d, key: client, limit: 5 per day, algorithm: calendar, zone: '+2 h'}\n" +
			"- {name: e, key: client, limit: 5 per day, algorithm: calendar, zone: }\n" +
			"- {name: f, key: client, limit: 5 per 1d, zone: UTC}\n",
		`rules.yaml:3:71: zone is "Europe/Atlantis", which the time zone database of this machine does not know; allowed is the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:4:71: zone is "Local"; allowed is the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:5:71: zone is "../../etc/passwd", which the time zone database of this machine does not know; allowed is the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:6:71: zone is "+2 h"; allowed is the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:7:70: zone is empty; allowed is the name of a time zone, such as Europe/Vienna or UTC
rules.yaml:8:49: zone has no effect with algorithm sliding; write "algorithm: calendar" or leave zone out`,
	},

	{
		"refused events in flight", "version: 1\nlimits:\n" +
			"- {name: a, key: client, limit: 5 at once for 1m, count_refused: true, algorithm: in-flight}\n" +
			"- {name: b, key: client, limit: 5 at once for 1m, count_refused: false, algorithm: in-flight}\n",
		`rules.yaml:3:66: count_refused has no effect with algorithm in-flight: a refused event is never under way; leave it out`,
	},

	// Limits that follow the traffic.
	{
		"nothing in adapt", limit("name: x", "key: client", "limit: 1 per 1s", "adapt: {}", "algorithm: gcra"),
		`rules.yaml:6:12: adapt has no steps; write "steps: [2000 below 1000 per 1s, 1000 below 5000 per 1s]"
rules.yaml:6:12: adapt has no above; write "above: 500"
rules.yaml:6:12: adapt does not go with algorithm gcra, which makes a rate of the limit; allowed is any but gcra, token-bucket and leaky-bucket`,
	},
	{
		"values of adapt", limit("name: x", "key: client", "limit: 1 per 1s", "adapt:", "  steps: [9 below 0 per 1s, 9 below 60 per 1m, 8 below 1 per 1s, 7 under 2 per 1s, x below 2 per 1s, 9 below 2 per 1, 9 below y per 1s]",
			"  above: many", "  span: 2h", "  smooth: 25h", "  hysteresis: 1", "  spam: 1m"),
		`rules.yaml:7:15: steps has "9 below 0 per 1s", which is not above the step before; allowed is more traffic in each step, and more than none
rules.yaml:7:52: steps has "8 below 1 per 1s", which is not above the step before; allowed is more traffic in each step, and more than none
rules.yaml:7:70: steps has "7 under 2 per 1s"; allowed is "N below COUNT per DURATION", such as "2000 below 1000 per 1s"
rules.yaml:7:88: steps has "x below 2 per 1s"; its limit is "x"; allowed is a whole number, such as 60 or 10_000
rules.yaml:7:106: steps has "9 below 2 per 1"; its duration is "1", which has no unit; write "1s"
rules.yaml:7:123: steps has "9 below y per 1s"; its count is "y"; allowed is a whole number, such as 60 or 10_000
rules.yaml:8:14: above is "many"; allowed is a whole number, such as 60 or 10_000
rules.yaml:9:13: span is 2h; allowed is 1s to 1h
rules.yaml:10:15: smooth is 25h; allowed is 1s to 24h
rules.yaml:11:19: hysteresis is "1"; allowed is a share from 0 to less than 1, such as 0.2
rules.yaml:12:7: adapt has the unknown key "spam"; did you mean span?`,
	},
	{
		"counts of adapt", limit("name: x", "key: client", "limit: 1 per 1s", "algorithm: exact",
			"adapt: {steps: [70_000 below 1 per 1s, 65_535 below 2 per 1s], above: 80_000, span: 500ms, smooth: 1s, hysteresis: 0.1}"),
		`rules.yaml:7:21: adapt: limit is 70000; algorithm exact allows at most 65535
rules.yaml:7:75: adapt: limit is 80000; algorithm exact allows at most 65535
rules.yaml:7:89: span is 500ms; allowed is 1s to 1h
rules.yaml:7:120: hysteresis has no effect with smooth; leave one of them out`,
	},
	{"adapt is a list", limit("name: x", "key: client", "limit: 1 per 1s", "adapt: [1]"), `rules.yaml:6:12: adapt is a list; allowed is a mapping of steps, above, span, smooth, hysteresis`},
	{"booleans in short", limit("name: x", "key: client", "limit: 1 per 1s", "count_refused: 1"), `rules.yaml:6:20: count_refused is "1"; allowed is true or false`},
	{
		"choices left empty", limit("name: x", "key: client", "limit: 1 per 1s", "algorithm: ''", "mode:"),
		`rules.yaml:6:16: algorithm is empty; leave the key out for the default
rules.yaml:7:11: mode is empty; allowed is enforce or shadow`,
	},

	// Bans.
	{
		"nothing in a ban", limit("name: x", "key: client", "limit: 1 per 1s", "ban: {}"),
		`rules.yaml:6:10: ban has no after; write "after: 20 refusals in 5m"
rules.yaml:6:10: ban has no for; write "for: 10m"`,
	},
	{
		"forms of ban", limit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 20 per 5m, for: 10, factor: 0.5, max: forever, remember: 0s}"),
		`rules.yaml:6:18: after is "20 per 5m"; allowed is "N hits in DURATION" or "N refusals in DURATION", such as "600 hits in 1m"
rules.yaml:6:34: for is "10", which has no unit; write "10s"
rules.yaml:6:46: factor is "0.5"; allowed is a number from 1 to 1000, such as 2 or 1.5
rules.yaml:6:56: max is "forever"; allowed is a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:6:75: remember is "0s"; allowed is whole milliseconds from 1ms to 3650d`,
	},
	{
		"what a ban counts", limit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 20 errors in 5m, for: 10m}"),
		`rules.yaml:6:18: after is "20 errors in 5m"; it counts "errors", and allowed is hits or refusals`,
	},
	{
		"ban after too many", limit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 2_000_000 hits in 5m, for: 10m}"),
		`rules.yaml:6:18: after is "2_000_000 hits in 5m"; allowed is at most 65535`,
	},
	{
		"max below for", limit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 1 hits in 1s, for: 10m, factor: 2, max: 5m}"),
		`rules.yaml:6:58: max is 5m, shorter than the first ban; allowed is at least 10m, the value of "for"`,
	},
	{
		"without factor", limit("name: x", "key: client", "limit: 1 per 1s", "ban: {after: 1 hits in 1s, for: 10m, max: 1h, remember: 7d}"),
		`rules.yaml:6:47: max has no effect on bans that are all alike; write "factor: 2" or leave max out
rules.yaml:6:61: remember has no effect on bans that are all alike; write "factor: 2" or leave remember out`,
	},
	{
		"lists of bans", "version: 1\nbans:\n" +
			"- {name: a, key: client, after: 1 hit in 1s, for: [5m, 1], max: 1h}\n" +
			"- {name: b, key: client, after: 1 hit in 1s, for: [5m, 1h], factor: 2}\n" +
			"- {name: c, key: client, after: 1 hit in 1s, for: []}\n" +
			"- {name: d, key: client, after: 1 hit in 1s, for: [10m, 5m], max: 5m}\n" +
			"- {name: e, key: client, after: 1 hit in 1s, for: [" + strings.Repeat("5m, ", 65) + "]}\n",
		`rules.yaml:3:56: for is "1", which has no unit; write "1s"
rules.yaml:4:69: factor does not go with a list in for, which says how long each ban is; leave one of them out
rules.yaml:5:51: for is an empty list; allowed is a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d, or a list of them
rules.yaml:6:67: max is 5m, shorter than the first ban; allowed is at least 10m, the value of "for"
rules.yaml:7:51: for has 65 durations; allowed is at most 64`,
	},
	{
		"jitter and extend", "version: 1\nbans:\n" +
			"- {name: a, key: client, after: 1 hit in 1s, for: 5m, jitter: 1.1}\n" +
			"- {name: b, key: client, after: 1 hit in 1s, for: 5m, jitter: -0.1, extend: 1}\n" +
			"- {name: c, key: client, after: 1 hit in 1s, for: 10m, jitter: 20%, max: 1h}\n" +
			"- {name: d, key: client, after: 1 hit in 1s, for: 10m, jitter: 0.5, max: 14m}\n" +
			"- {name: e, key: client, after: 1 hit in 1s, for: 3650d, jitter: 0.5}\n",
		`rules.yaml:3:63: jitter is "1.1"; allowed is a share from 0 to 1, such as 0.2
rules.yaml:4:63: jitter is "-0.1"; allowed is a share from 0 to 1, such as 0.2
rules.yaml:4:77: extend is "1"; allowed is true or false
rules.yaml:5:64: jitter is "20%"; allowed is a share from 0 to 1, such as 0.2
rules.yaml:6:64: ban: for: 10m0s: must be at most 9m20s: with a jitter of 0.5 it would be longer than the longest, 14m0s
rules.yaml:7:66: ban: for: 87600h0m0s: must be at most 58400h0m0s: with a jitter of 0.5 it would be longer than the longest, 87600h0m0s`,
	},
	{
		"factors", "version: 1\nbans:\n- {name: a, key: client, after: 1 hits in 1s, for: 1m, factor: -2}\n- {name: b, key: client, after: 1 hits in 1s, for: 1m, factor: .inf}\n- {name: c, key: client, after: 1 hits in 1s, for: 1m, factor: 1001}\n- {name: d, key: client, after: 1 hits in 1s, for: 1m, factor: 0}\n",
		`rules.yaml:3:64: factor is "-2"; allowed is a number from 1 to 1000, such as 2 or 1.5
rules.yaml:4:64: factor is ".inf"; allowed is a number from 1 to 1000, such as 2 or 1.5
rules.yaml:5:64: factor is "1001"; allowed is a number from 1 to 1000, such as 2 or 1.5
rules.yaml:6:64: factor is "0"; allowed is a number from 1 to 1000, such as 2 or 1.5`,
	},
	{
		"ban of refusals without a limit", "version: 1\nbans:\n- {name: a, key: client, after: 1 refusals in 1s, for: 1m}\n",
		`rules.yaml:3:33: after counts refusals, but a rule of bans refuses nothing before it bans; write "N hits in DURATION", or put the ban under a limit`,
	},
	{
		"limit in bans", "version: 1\nbans:\n- {name: a, key: client, after: 1 hits in 1s, for: 1m, limit: 1 per 1s}\n",
		`rules.yaml:3:56: a ban has the unknown key "limit"; allowed is name, key, when, mode, on_store_failure, after, for, factor, max, jitter, extend, remember`,
	},

	// Hot keys and counters.
	{
		"thresholds", "version: 1\nhot:\n- {name: a, key: path, threshold: 500}\n- {name: b, key: path, threshold: 0 per 1s}\n- {name: c, key: path, threshold: 2_000_000 per 1s, hold: -1s}\n",
		`rules.yaml:3:35: threshold is "500"; allowed is "N per DURATION", such as "60 per 1m"
rules.yaml:4:35: threshold is "0 per 1s"; allowed is 1 to 1048576
rules.yaml:5:35: threshold is "2_000_000 per 1s"; allowed is 1 to 1048576
rules.yaml:5:59: hold is "-1s"; allowed is a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d`,
	},
	{
		"counters", "version: 1\ncounters:\n  a: {key: client}\n  b c: {key: client, spans: [1m, 60s, 1]}\n  d: 5\n  e: {key: client, spans: []}\n",
		`rules.yaml:3:6: a counter has no spans; write "spans: [1s, 1m, 1h, 24h]"
rules.yaml:4:3: name is "b c"; allowed is 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:4:34: spans has 1m twice; allowed is each span once
rules.yaml:4:39: spans is "1", which has no unit; write "1s"
rules.yaml:5:6: a counter is "5"; allowed is a mapping of key, spans, when
rules.yaml:6:27: spans is an empty list; allowed is a duration or a list of them, such as [1s, 1m, 1h, 24h]`,
	},
	{
		"two bad spans", "version: 1\ncounters:\n  a: {key: client, spans: [x, y]}\n",
		`rules.yaml:3:28: spans is "x"; allowed is a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d
rules.yaml:3:31: spans is "y"; allowed is a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d`,
	},
	{
		"too many spans", "version: 1\ncounters:\n  a: {key: client, spans: [1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s, 13s, 14s, 15s, 16s, 17s]}\n",
		`rules.yaml:3:27: spans has 17 durations; allowed is at most 16`,
	},

	// Conditions.
	{
		"values of when", when("{method: [], path: [login, /ok], status: [4040, 600-500, 404], client: example.com, agent: ''}"),
		`rules.yaml:6:20: method is an empty list; allowed is a method such as GET, or a list of them
rules.yaml:6:31: path pattern is "login"; allowed is a pattern that begins with '/' or '*'
rules.yaml:6:53: status is "4040"; allowed is a status such as 404, a class such as 5xx or a range such as 500-504
rules.yaml:6:59: status is "600-500"; allowed is a status such as 404, a class such as 5xx or a range such as 500-504
rules.yaml:6:82: in client, "example.com" is no address; allowed is an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24
rules.yaml:6:102: agent is empty; allowed is a value, in which * stands for anything but '/' and ** for anything, or a list of them`,
	},
	{
		"fields of when", when("{Path: /x, at: 1, a/b: c, method: {a: b}}"),
		`rules.yaml:6:12: when has the field "Path"; did you mean path?
rules.yaml:6:22: when has the field "at", a word that commands use; allowed is any other name
rules.yaml:6:29: when has the field "a/b"; allowed is 1 to 64 letters, digits, '-', '_' and '.'
rules.yaml:6:45: method is a mapping; allowed is a method such as GET, or a list of them`,
	},
	{"empty when", when("{}"), `rules.yaml:6:11: when is empty; leave it out for a rule about all events`},
	{"when is a scalar", when("POST"), `rules.yaml:6:11: when is "POST"; allowed is a mapping of fields and the values that they may have`},
	{"when names a field twice", when("{path: /a, path: /b}"), `rules.yaml:6:22: when has the key "path" twice; the first is in line 6`},
}

// limit returns a file with one limit, made of lines; the first is in line 3.
func limit(lines ...string) string {
	return "version: 1\nlimits:\n  - " + strings.Join(lines, "\n    ") + "\n"
}

// when returns a file with one limit whose condition is in line 6 from column
// 11 on.
func when(condition string) string {
	return limit("name: x", "key: client", "limit: 1 per 1s", "when: "+condition)
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
