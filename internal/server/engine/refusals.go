package engine

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// Recent refusals take refusalSets * refusalWays records of about half a KiB: 8 MiB for
// 16,384 keys.
const (
	refusalSets = 2048
	refusalWays = 8

	// refusalText is the bytes of a key and of an event in one record. A longer key is not
	// kept; an event has what the key leaves.
	refusalText = 384

	// exampleEvery is how often the event of a record is replaced by a newer one.
	exampleEvery = time.Second
)

// refusals keeps the keys that rules refused lately, each with one of the events. A key that
// is refused again and again takes one record, so that it does not push out others. A new
// key replaces that of its set which was refused longest ago. It is safe for concurrent use
// and allocates nothing once it is made.
type refusals struct {
	seed maphash.Seed
	sets []refusalSet
}

type refusalSet struct {
	mu      sync.Mutex
	evicted int64 // when the newest key that was replaced was last refused; 0 if none was
	records [refusalWays]refusalRecord
}

// A refusalRecord is one key that a rule refused. Times are in nanoseconds since 1970.
type refusalRecord struct {
	hash        uint64
	count       uint64 // 0: the record is empty
	first, last int64

	// The event of the record.
	at                int64
	decision          api.Decision
	method, host, key uint16
	path              uint16 // lengths, in the order key, method, host, path
	text              [refusalText]byte
}

// add counts a refusal of key, in the form of countRefused. ev is nil if there is only
// a key.
func (r *refusals) add(t time.Time, key []byte, d *ratelimit.Decision, ev *match.Event) {
	if len(key) > refusalText {
		return
	}
	hash, now := maphash.Bytes(r.seed, key), t.UnixNano()
	set := &r.sets[hash%refusalSets]
	set.mu.Lock()
	defer set.mu.Unlock()
	x := set.find(hash, key)
	if x == nil {
		x = set.oldest()
		if x.count > 0 {
			set.evicted = max(set.evicted, x.last)
		}
		x.hash, x.count, x.first, x.at = hash, 0, now, 0
		x.key = uint16(copy(x.text[:], key))
	}
	x.count++
	x.last = now
	if x.count == 1 || now-x.at >= int64(exampleEvery) {
		x.setExample(now, d, ev)
	}
}

// find returns the record of key, or nil.
//
// REQUIRES: s.mu.
func (s *refusalSet) find(hash uint64, key []byte) *refusalRecord {
	for i := range s.records {
		if x := &s.records[i]; x.count > 0 && x.hash == hash && bytes.Equal(x.text[:x.key], key) {
			return x
		}
	}
	return nil
}

// oldest returns an empty record, or that of the key which was refused longest ago.
//
// REQUIRES: s.mu.
func (s *refusalSet) oldest() *refusalRecord {
	old := &s.records[0]
	for i := range s.records {
		x := &s.records[i]
		if x.count == 0 {
			return x
		}
		if x.last < old.last {
			old = x
		}
	}
	return old
}

// setExample makes an event that of the record.
func (x *refusalRecord) setExample(now int64, d *ratelimit.Decision, ev *match.Event) {
	x.at, x.decision = now, DecisionOf(d)
	x.method, x.host, x.path = 0, 0, 0
	if ev == nil {
		return
	}
	rest := x.text[x.key:]
	keep := func(v []byte, most int) uint16 {
		n := min(len(v), most, len(rest))
		for n > 0 && n < len(v) && !utf8.RuneStart(v[n]) {
			n--
		}
		copy(rest, v[:n])
		rest = rest[n:]
		return uint16(n)
	}
	x.method = keep(ev.Get(match.Method), 16)
	x.host = keep(ev.Get(match.Host), 64)
	x.path = keep(ev.Get(match.Path), refusalText)
}

// texts returns the method, host and path of the record's event.
func (x *refusalRecord) texts() (method, host, path string) {
	rest := x.text[x.key:]
	next := func(n uint16) string {
		text := string(rest[:n])
		rest = rest[n:]
		return text
	}
	return next(x.method), next(x.host), next(x.path)
}

// each calls f with a copy of each record that is in use, and returns when the newest key
// that was replaced was last refused: 0 if none was.
func (r *refusals) each(f func(*refusalRecord)) (evicted int64) {
	for i := range r.sets {
		set := &r.sets[i]
		set.mu.Lock()
		records := set.records
		evicted = max(evicted, set.evicted)
		set.mu.Unlock()
		for j := range records {
			if records[j].count > 0 {
				f(&records[j])
			}
		}
	}
	return evicted
}

// maxExplained is how many keys an explanation has.
const maxExplained = 100

// Explain returns which keys that have all of these values, such as an address, a user or a
// path, were refused lately, and why. An address also finds "proxy:" and that address, the client of
// requests whose trusted proxy did not name one. Keys of rules that were removed or have got another
// key are left out, and so are keys of more than some 300 bytes. It scans the recent refusals. Errors
// are of *Error.
func (e *Engine) Explain(all ...string) (x api.Explanation, err error) {
	if len(all) == 0 || len(all) > match.MaxKeyFields {
		return x, errorf(api.BadArg, "key: %d values: must be 1 to %d", len(all), match.MaxKeyFields)
	}
	for _, v := range all {
		if v == "" || len(v) > MaxKey {
			return x, errorf(api.BadArg, "key: %d bytes: must be 1 to %d", len(v), MaxKey)
		}
	}
	if err := e.scans.begin(); err != nil {
		return x, err
	}
	defer e.scans.end()
	set := e.limiter.Set()
	var found []refusalRecord
	evicted := e.recent.each(func(r *refusalRecord) {
		rule, key, ok := refusedKey(set, r.text[:r.key])
		if ok && !slices.ContainsFunc(all, func(v string) bool { return !rule.Key.Has(key, v) && !rule.Key.Has(key, "proxy:"+v) }) {
			found = append(found, *r)
		}
	})
	slices.SortFunc(found, func(a, b refusalRecord) int { return cmp.Compare(b.last, a.last) })
	x = api.Explanation{Values: all, Since: e.started.UTC(), Refusals: []api.Refusal{}}
	if evicted > 0 {
		x.Since = moment(evicted)
	}
	for i := range found[:min(len(found), maxExplained)] {
		refusal, err := e.refusal(set, &found[i])
		if err != nil {
			return x, err
		}
		x.Refusals = append(x.Refusals, refusal)
	}
	return x, nil
}

// refusal returns a record as the API has it, with what the rule decides now.
func (e *Engine) refusal(set *ratelimit.Set, r *refusalRecord) (api.Refusal, error) {
	rule, key, _ := refusedKey(set, r.text[:r.key])
	parts := rule.Key.Values(string(key))
	out := api.Refusal{
		Rule: rule.Name, Sentence: rules.LimitSentence(rule), Fields: rule.Key.Fields(), Key: api.KeyOf(parts...),
		Count: r.count, First: moment(r.first), Last: moment(r.last), Example: api.RefusedEvent{Time: moment(r.at), Decision: r.decision},
	}
	out.Example.Method, out.Example.Host, out.Example.Path = r.texts()
	var now api.KeyReport
	if err := e.inspectRule(rule, parts, &now); err != nil {
		return out, err
	}
	if len(now.Rules) > 0 {
		out.Now = &now.Rules[0].Decision
	}
	if len(now.Bans) > 0 {
		out.Ban = &now.Bans[0]
	}
	return out, nil
}

func moment(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }
