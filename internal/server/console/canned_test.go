package console_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys as strangers choose them.
var (
	imgKey  = `<img src=x onerror="window.owned=1">`
	bidiKey = "\u202egnp.exe\u2066\x1b[31m\u0000end"
	longKey = strings.Repeat("k<b>", 256)
	evil    = []string{imgKey, bidiKey, longKey, `"><script>window.owned=1</script>`, "javascript:window.owned=1", "=HYPERLINK(1)", "a&amp;b", "  two  spaces  ", "\u202e", "z̸̡̢̛̙̙a̶l̷g̸o̷"}
)

const rulesText = `version: 1

client: {ipv4: 32, ipv6: 64}

counters:
  requests: {key: client, spans: [1s, 1m, 1h, 24h]}
  pages: {key: path, spans: [1m, 1h]}

limits:
  - name: per-client
    key: client               # an address, IPv6 by its /64
    limit: [20 per 1s, 600 per 1m]
    ban: {after: 20 refusals in 5m, for: 10m, factor: 2, max: 24h}

  - name: login
    when: {method: POST, path: /login}
    key: [client, user]
    limit: 5 per 10m
    mode: shadow

bans:
  - name: scanner
    key: client
    when: {path: ["/wp-admin/**", "**.php"], status: 400-499}
    after: 10 hits in 1m
    for: 1d

hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 500 per 2s, hold: 60s}

allow: [10.0.0.0/8]
`

func (f *fakeAPI) totals(now time.Time) object {
	n := int(now.Sub(f.began).Seconds())
	if f.empty {
		n = 0
	}
	return object{"allowed": n * 11_800, "refused": n * 430, "banned": n * 210, "unmatched": n * 3, "errors": 0}
}

func (f *fakeAPI) book(now time.Time) object {
	var broken any
	if f.broken != "" {
		broken = f.broken
	}
	rule := func(name, kind, sentence string, shadow bool, fields ...string) object {
		return object{"name": name, "kind": kind, "fields": fields, "sentence": name + ": " + sentence, "shadow": shadow, "stats": object{"allowed": 1_210_400_000, "refused": 41_230_000, "banned": 40_000_000, "shadow": 0, "skipped": 12, "bans_started": 2210, "keys": 91_000, "bans": 4}}
	}
	hot := rule("product", "hot", "for requests with path /product/*, a path that is hit 500 times within 2s is hot for 1m.", false, "path")
	hot["stats"] = nil
	return object{
		"file": "/etc/lately/rules.yaml", "text": rulesText, "since": now.Add(-26 * time.Minute), "error": broken, "allow": object{"clients": list{"10.0.0.0/8"}, "files": list{object{"name": "cdn.txt", "prefixes": 15}}},
		"rules": list{
			rule("per-client", "limit", "a client may make 20 requests per 1s and 600 requests per 1m; the 21st within any 1s and the 601st within any 1m are refused. More than 20 refusals in 5m ban it for 10m, each further ban twice as long, at most 24h.", false, "client"),
			rule("login", "limit", "for requests with method POST and path /login, a combination of client and user may make 5 requests per 10m; the 6th within any 10m is refused. The rule is a shadow: it reports, and refuses nothing.", true, "client", "user"),
			rule("scanner", "ban", "for requests with path /wp-admin/** or **.php and status 400-499, a client with more than 10 hits in 1m is banned for 24h.", false, "client"),
			hot,
		},
		"counters": list{object{"name": "requests", "fields": []string{"client"}, "sentence": "requests: Requests are counted for each client over the last 1s, 1m, 1h and 24h."}},
	}
}

// rates invents traffic: waves, and a flood now and then.
func rates(now time.Time, span time.Duration, points int, perRule bool) []object {
	var all []object
	end := now.Truncate(time.Second)
	width := span / time.Duration(max(1, points))
	for i := range points {
		to := end.Add(-time.Duration(points-1-i) * width)
		s := width.Seconds()
		allowed, limited, banned := traffic(to)
		r := object{"from": to.Add(-width), "to": to, "all": object{"allowed": int(allowed * s), "refused": int(limited * s), "banned": int(banned * s), "unmatched": int(30 * s), "errors": 0}}
		if perRule {
			of := func(allowed, refused, banned, shadow float64) object {
				return object{"allowed": int(allowed * s), "refused": int(refused * s), "banned": int(banned * s), "shadow": int(shadow * s), "bans": int(banned * s / 1000)}
			}
			r["hot"] = object{"product": object{"events": int((9000 + 8000*math.Sin(float64(to.Unix())/14_000)) * s), "hits": int(5000 * s), "misses": int(500 * s), "loads": 0, "stale": 0}}
			r["rules"] = object{"per-client": of(allowed, limited*0.82, banned*0.7, 0), "scanner": of(allowed*0.1, limited*0.18, banned*0.3, 0), "login": of(41, 0, 0, 6+5*math.Sin(float64(to.Unix())/7)), "product": of(0, 0, 0, 0)}
		}
		all = append(all, r)
	}
	return all
}

// trial is what a draft would change: nothing if it is the file, and all kinds of things to
// all kinds of keys if it is not.
func (f *fakeAPI) trial(w http.ResponseWriter, draft string) {
	now := time.Now()
	side := func(name string, refused, bans int) object {
		return object{"rules": name, "allowed": 412_300 - refused, "refused": refused, "bans": bans, "banned_seconds": 600}
	}
	d := object{"field": "client", "old": side("rules.yaml", 9120, 3), "new": side("draft", 9120, 3), "newly_refused": 0, "newly_allowed": 0, "keys": list{}, "bans": list{}}
	if strings.Contains(draft, "60 per 1m") {
		keys := list{}
		for i, k := range append([]string{"203.0.113.77"}, evil...) {
			keys = append(keys, object{"key": []string{k}, "events": 9100 / (i + 1), "old_refused": 400 / (i + 1), "new_refused": 700 / (i + 1), "newly_refused": 310 / (i + 1), "newly_allowed": i % 3})
		}
		d["new"], d["newly_refused"], d["newly_allowed"], d["keys"], d["keys_left_out"] = side("draft", 18_400, 41), 9310, 30, keys, 712
		d["bans"] = list{object{"fields": list{"client"}, "key": []string{imgKey}, "old_seconds": 0, "new_seconds": 600}, object{"fields": list{"client", "user"}, "key_base64": [][]byte{{0xff, '<'}, []byte("ada")}, "old_seconds": 3600, "new_seconds": 0}}
	}
	answer(w, object{
		"events": 412_300, "since": now.Add(-31 * time.Minute), "first": now.Add(-30 * time.Minute), "last": now, "changes": d,
		"unknown": list{"What keys had used before these events, and bans that held then: both sets of rules begin with nothing.", "no event has the field " + bidiKey},
	})
}

// around has targets that enforce bans, and followed logs, one of each with a failure whose text looks like markup.
func around(now time.Time) (object, list) {
	target := func(name string, lag int, failures int, err string) object {
		return object{"name": name, "lag_ms": lag, "error": err, "failures": failures, "batches": 40, "repairs": 0, "dropped": 0}
	}
	log := func(file string, lines, bad, gaps, lag int, silent bool, problem string) object {
		return object{"file": file, "lines": lines, "bad": bad, "skipped": 3, "late": 0, "gaps": gaps, "unread_bytes": 0, "lag_ms": lag, "last_line": now.Add(-2 * time.Minute), "silent": silent, "problem": problem}
	}
	return object{"networks": 4127, "skipped": object{"protected": 2, "reserved": 0}, "targets": list{target("nftables", 0, 0, ""), target("webhook", 71_000, 12, "Post <i>: "+evil[0])}},
		list{log("/var/log/nginx/access.log", 51_400_230, 12, 0, 0, false, ""), log("/var/log/nginx/"+evil[1]+".log", 230, 0, 1, 0, true, "")}
}

func traffic(t time.Time) (allowed, limited, banned float64) {
	x := float64(t.Unix() % 100_000)
	noise := math.Abs(math.Sin(x*12.9898)*43758.5453 - math.Floor(math.Sin(x*12.9898)*43758.5453))
	flood := math.Exp(-math.Pow(math.Mod(x, 47)-30, 2) / 22)
	return 10_400 + 1900*math.Sin(x/19) + 900*noise, 240 + 160*noise + 2600*flood, 120 + 1500*math.Exp(-math.Pow(math.Mod(x, 47)-36, 2)/30)
}

// hotKeys is a list of hot keys: by their events, one of them from a stranger, by hand, and always.
func hotKeys(now time.Time) []object {
	return []object{
		{"rule": "product", "key": []string{"/product/4711"}, "since": now.Add(-95 * time.Second), "until": now.Add(48 * time.Second), "lo": 24_310, "hi": 24_960, "rate": 12_155.0, "processes": 118},
		{"rule": "product", "key": []string{"/product/<i>" + evil[0]}, "since": now.Add(-12 * time.Second), "until": now.Add(31 * time.Second), "lo": 731, "hi": 731, "rate": 365.5, "processes": 1},
		{"rule": "product", "key": []string{"/product/by-hand"}, "since": now.Add(-3 * time.Hour), "until": now.Add(time.Hour), "lo": 0, "hand": true},
		{"rule": "product", "key": []string{"/product/always"}, "since": now.Add(-25 * time.Minute), "lo": 90, "hi": 93, "rate": 45.0, "processes": 3},
	}
}

// hotReport is the report about a key under the rule product.
func (f *fakeAPI) hotReport(values []string, now time.Time) object {
	day := list{}
	for i := range 144 {
		n := 0
		if i > 60 {
			n = int(700_000 + 600_000*math.Sin(float64(i)/9))
		}
		day = append(day, object{"start": now.Truncate(10 * time.Minute).Add(-time.Duration(143-i) * 10 * time.Minute), "count": n})
	}
	report := object{"rule": "product", "lo": 24_310, "hi": 24_960, "span_ms": 2000, "day": day, "processes": list{
		object{"name": "shop-web-4021", "events": 61_200}, object{"name": "shop-api-<i>" + "77", "events": 3_100}, object{"name": "192.0.2.7", "events": 40},
	}}
	for _, k := range f.hot {
		if slices.Equal(k["key"].([]string), values) {
			report["hot"] = k
		}
	}
	return report
}

func (f *fakeAPI) search(rule, q string) object {
	found := []ban{}
	for _, b := range f.bans {
		if (rule == "" || b.Rule == rule) && (q == "" || strings.Contains(strings.Join(b.Key, " ")+b.Reason, q)) {
			found = append(found, b)
		}
	}
	return object{"bans": found, "total": len(found)}
}

// refused is the list of keys that were refused most: one is banned, one is not text.
func (f *fakeAPI) refused() object {
	until := func(key string) any {
		for _, b := range f.bans {
			if len(b.Key) == 1 && b.Key[0] == key {
				return b.Until
			}
		}
		return nil
	}
	keys := list{
		object{"rule": "per-client", "key": []string{"203.0.113.77"}, "lo": 31_000, "hi": 33_100, "per_second": 516.7, "banned_until": until("203.0.113.77")},
		object{"rule": "per-client", "key": []string{"203.0.113.201"}, "lo": 4_020, "hi": 4_100, "per_second": 67.0, "banned_until": until("203.0.113.201")},
		object{"rule": "login", "key": []string{"192.0.2.7", evil[1]}, "lo": 410, "hi": 500, "per_second": 6.83, "banned_until": nil},
		object{"rule": "per-client", "key_base64": [][]byte{{0xff, 0xfe, '<', 'i', '>'}}, "lo": 61, "hi": 70, "per_second": 1.02, "banned_until": nil},
	}
	for i, k := range []string{imgKey, longKey} {
		keys = append(keys, object{"rule": "per-client", "key": []string{k}, "lo": 50 - i, "hi": 50, "per_second": 0.8, "banned_until": nil})
	}
	return object{"refused": keys}
}

func top(n string) list {
	out := list{}
	most, _ := strconv.Atoi(n)
	for i := range min(most, 24) {
		k := fmt.Sprintf("203.0.113.%d", 200-7*i)
		if i > 2 && i-3 < len(evil) && i%2 == 1 {
			k = evil[(i-3)/2]
		}
		lo := int(61_000 / math.Pow(float64(i+1), 0.8))
		row := object{"key": []string{k}, "lo": lo, "hi": lo + lo/9, "estimate": lo + lo/20, "peak_per_second": float64(lo) / 21}
		if i%3 == 0 {
			row["refused"], row["refused_by"] = lo/(i+2), "per-client"
		}
		out = append(out, row)
	}
	return out
}

func (f *fakeAPI) key(fields, values []string, now time.Time) object {
	windows := list{}
	if len(fields) == 1 {
		for _, span := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
			slots := list{}
			lo, oldest := 0, 0
			for i := range 11 { // the oldest is in hi only, as the server has it
				start := now.Truncate(span / 10).Add(-time.Duration(10-i) * span / 10)
				n := int(span.Seconds() * (8 + 6*math.Sin(float64(i)*1.3)) / 10)
				if i == 0 {
					oldest = n
					continue
				}
				lo += n
				slots = append(slots, object{"start": start, "count": n})
			}
			windows = append(windows, object{"counter": "requests", "span_ms": span.Milliseconds(), "lo": lo, "hi": lo + oldest, "slots": slots})
		}
	}
	var held []ban
	for _, b := range f.bans {
		if strings.Join(b.Key, "\t") == strings.Join(values, "\t") {
			held = append(held, b)
		}
	}
	until := 0
	if len(held) > 0 {
		until = int(held[0].Until.UnixMilli())
	}
	hot := list{}
	if slices.Equal(fields, []string{"path"}) {
		hot = append(hot, f.hotReport(values, now))
	}
	return object{
		"fields": fields, "key": values, "counters": windows, "bans": held, "hot": hot,
		"rules": list{
			object{"rule": "per-client", "decision": object{"allowed": until == 0, "limit": 600, "remaining": 188, "retry_after_ms": 0, "reset_after_ms": 41_200, "rule": "per-client", "banned_until_ms": until}},
			object{"rule": "scanner", "decision": object{"allowed": true, "limit": 10, "remaining": 10, "retry_after_ms": 0, "reset_after_ms": 0, "rule": "scanner", "banned_until_ms": 0, "delay_ms": 90_000}},
		},
	}
}

// explanation explains refusals of the key with these values: under its own rule, with all
// fields of an event, and as a part of another key.
func explanation(values []string, now time.Time) object {
	first, last := now.Add(-18*time.Minute), now.Add(-4*time.Second)
	decision := func(until int64) object {
		return object{"allowed": false, "limit": 600, "remaining": 0, "retry_after_ms": 41_200, "reset_after_ms": 60_000, "rule": "per-client", "banned_until_ms": until}
	}
	return object{"values": values, "since": now.Add(-26 * time.Hour), "refusals": list{
		object{
			"rule": "per-client", "sentence": "per-client: a client may make 600 requests per 1m.", "fields": list{"client"}, "key": values, "count": 4127, "first": first, "last": last,
			"example": object{"time": last, "method": "GET", "host": "shop.example.org", "path": "/search/" + strings.Repeat("a-long-path/", 20) + evil[0], "decision": decision(0)},
		},
		object{
			"rule": "login", "sentence": "login: a combination of client and user may make 5 requests per 10m.", "fields": list{"client", "user"}, "key": list{values[0], "ada" + evil[1]}, "count": 1, "first": last, "last": last,
			"example": object{"time": last, "decision": decision(now.Add(time.Hour).UnixMilli())},
		},
	}}
}
