package replay_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// The reference is the definitions of the oracle (oracle.py beside the shared
// logs), written with lists and no other structure: it has nothing in common
// with the code that it judges but the scanners of package accesslog, and for
// random logs not even these.

// A record is an event of a log: its time, and those values that it has.
type record struct {
	at     time.Time
	values map[string]string
}

// A refLog has the contents of the lines of a log.
type refLog struct {
	lines, bad int64
	records    []record
}

func (l *refLog) add(o refLog) {
	l.lines += o.lines
	l.bad += o.bad
	l.records = append(l.records, o.records...)
}

// readLog reads a log line by line, on one core.
func readLog(t testing.TB, format string, year int, data []byte) refLog {
	t.Helper()
	f := must.Get(accesslog.ParseFormat(format))(t)
	p := must.Get(f.NewParser(accesslog.Options{Year: year}))(t)
	var log refLog
	var ev match.Event
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		log.lines++
		if !p.Parse(line, &ev) {
			log.bad++
			continue
		}
		log.records = append(log.records, recordOf(&ev))
		for p.Next(&ev) {
			log.records = append(log.records, recordOf(&ev))
		}
	}
	return log
}

func recordOf(ev *match.Event) record {
	r := record{ev.Time, make(map[string]string)}
	for _, name := range eventfield.WellKnown() {
		if v := ev.GetNamed(name); v != nil {
			r.values[name] = string(v)
		}
	}
	return r
}

// A moment is a record as it is judged, at a floored time in milliseconds.
type moment struct {
	t      int64
	values map[string]string
}

// ordered rounds the times of records down and puts them in the order of judging.
func ordered(records []record, resolution time.Duration) []moment {
	moments := make([]moment, len(records))
	for i, r := range records {
		moments[i] = moment{r.at.Truncate(resolution).UnixMilli(), r.values}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.t, b.t) })
	return moments
}

// A hit is an event of a key.
type hit struct {
	t   int64
	key string
}

// hitsOf returns the events that have the field.
func hitsOf(moments []moment, field string) []hit {
	var hits []hit
	for _, m := range moments {
		if v := m.values[field]; v != "" {
			hits = append(hits, hit{m.t, v})
		}
	}
	return hits
}

// A refKey has the recorded times of a key, and the newest of all.
type refKey struct {
	recorded []int64
	newest   int64
	until    int64
	judged   bool
	banned   bool // until has been set
	hot      bool
}

type refKeys map[string]*refKey

// at returns the key's record and the time at which its event is judged: its own, or the time of an earlier, newer event of
// the key.
func (r refKeys) at(h hit) (*refKey, int64) {
	k := r[h.key]
	if k == nil {
		k = &refKey{}
		r[h.key] = k
	}
	if !k.judged || h.t > k.newest {
		k.newest, k.judged = h.t, true
	}
	return k, k.newest
}

// within returns how many of the times, which ascend, are in (t-span, t].
func within(times []int64, t int64, span time.Duration) int {
	n := 0
	for i := len(times) - 1; i >= 0 && times[i] > t-span.Milliseconds(); i-- {
		n++
	}
	return n
}

func refLimit(hits []hit, n uint64, span time.Duration, countRefused bool) []byte {
	keys := make(refKeys)
	var decisions []byte
	for _, h := range hits {
		k, t := keys.at(h)
		allowed := uint64(within(k.recorded, t, span)) < n
		if allowed || countRefused {
			k.recorded = append(k.recorded, t)
		}
		decisions = append(decisions, letter(allowed))
	}
	return decisions
}

func letter(allowed bool) byte {
	if allowed {
		return 'A'
	}
	return 'D'
}

func refBan(hits []hit, n uint64, span, long time.Duration) (decisions []byte, starts []hit) {
	keys := make(refKeys)
	for _, h := range hits {
		k, t := keys.at(h)
		allowed := true
		switch {
		case k.banned && t < k.until:
			allowed = false
		case uint64(within(k.recorded, t, span)) >= n:
			allowed = false
			k.until, k.banned, k.recorded = t+long.Milliseconds(), true, nil
			starts = append(starts, h)
		default:
			k.recorded = append(k.recorded, t)
		}
		decisions = append(decisions, letter(allowed))
	}
	return decisions, starts
}

func refHot(hits []hit, n uint64, span time.Duration) (first []hit) {
	keys := make(refKeys)
	for _, h := range hits {
		k, t := keys.at(h)
		k.recorded = append(k.recorded, t)
		if !k.hot && uint64(within(k.recorded, t, span)) >= n {
			k.hot = true
			first = append(first, h)
		}
	}
	return first
}

// A refTop is a key, how often it came, and the times when, ascending.
type refTop struct {
	key   string
	times []int64
}

// refRank returns all keys, the busiest first.
func refRank(hits []hit) []refTop {
	times := make(map[string][]int64)
	for _, h := range hits {
		times[h.key] = append(times[h.key], h.t)
	}
	var top []refTop
	for key, at := range times {
		slices.Sort(at)
		top = append(top, refTop{key, at})
	}
	slices.SortFunc(top, func(a, b refTop) int {
		return cmp.Or(len(b.times)-len(a.times), strings.Compare(a.key, b.key))
	})
	return top
}

// peak returns the largest count in any (t-span, t], t being any of the times.
func (k refTop) peak(span time.Duration) int {
	most := 0
	for i, t := range k.times {
		most = max(most, within(k.times[:i+1], t, span))
	}
	return most
}

// epochText is milliseconds as seconds in decimal.
func epochText(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// hitDigest is the oracle's digest of hits; keys that are not text are bytes,
// which are taken as Latin-1.
func hitDigest(hits []hit, text bool) string {
	var b bytes.Buffer
	for _, h := range hits {
		b.WriteString(epochText(h.t) + "\t")
		if text {
			b.WriteString(h.key)
		} else {
			for _, c := range []byte(h.key) {
				b.WriteRune(rune(c))
			}
		}
		b.WriteByte('\n')
	}
	return hexDigest(b.Bytes())
}

// TestReference holds the reference to the oracle's own hand-made example.
func TestReference(t *testing.T) {
	var hits []hit
	for _, h := range []hit{{0, "a"}, {0, "a"}, {4, "a"}, {5, "a"}, {5, "b"}, {9, "a"}, {10, "a"}} {
		hits = append(hits, hit{h.t * 1000, h.key})
	}
	const s = time.Second
	for _, c := range []struct{ name, got, want string }{
		{"2 per 5 s", string(refLimit(hits, 2, 5*s, false)), "AADAAAA"},
		{"2 per 5 s, refused count", string(refLimit(hits, 2, 5*s, true)), "AADAAAA"},
		{"1 per 5 s", string(refLimit(hits, 1, 5*s, false)), "ADDAADA"},
		{"1 per 5 s, refused count", string(refLimit(hits, 1, 5*s, true)), "ADDDADD"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
	decisions, starts := refBan(hits, 2, 5*s, 5*s)
	if string(decisions) != "AADDAAA" || !slices.Equal(starts, []hit{{4000, "a"}}) {
		t.Errorf("more than 2 in 5 s are banned for 5 s: %s, %v", decisions, starts)
	}
	if first := refHot(hits, 4, 6*s); !slices.Equal(first, []hit{{5000, "a"}}) {
		t.Errorf("hot at 4 in 6 s: %v", first)
	}
	if top := refRank(hits); top[0].key != "a" || top[0].peak(5*s) != 3 || top[0].peak(6*s) != 4 || top[0].peak(s) != 2 {
		t.Errorf("busiest: %v", top)
	}
}
