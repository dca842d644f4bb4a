package ratelimit

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/invalid"
)

// The head of a chunk of counts is a rule, the layout of its records, and the size of
// their table. An entry is a key, how long before the chunk was written it was judged
// last, whether a bucket of it was cut, and what each counter holds. What is read goes into
// a record of that layout outside the table, and from there into the table, by the rules
// of an Update. A key whose entry would be too
// large has several, each with the state of one counter, and zeros for the others.

// largeEntry is the length from which the entry of a key is split. The difference from
// the mebibyte that is promised is for one log of 65,535 times that are no nearer than
// milliseconds.
const largeEntry = 256 << 10

// counts exports the counts of all rules. An Update that replaces a table moves its keys
// to the new one, which is exported later. So no key is missed.
func (x *exporter) counts() bool {
	done := make(map[*records]bool)
	for {
		mr := x.next(done)
		if mr == nil {
			return true
		}
		done[mr.records] = true
		x.Begin(snapshot.Counts, x.now)
		x.Buf = appendRule(x.Buf, mr.Rule)
		x.Buf = snapshot.AppendBytes(x.Buf, mr.records.layout.save(x.m.config.Resolution, x.m.hashValue(nil)))
		if !mr.records.table.Export(x.Writer, func(key []byte, r keytable.Record) { x.entry(mr.records, key, r) }) {
			return false
		}
	}
}

// next returns a rule whose records have not been exported, and to which no keys are being
// moved.
func (x *exporter) next(done map[*records]bool) *memoryRule {
	x.m.mu.RLock()
	defer x.m.mu.RUnlock()
	for _, mr := range x.m.rules.Load().rules {
		if !done[mr.records] {
			return mr
		}
	}
	return nil
}

// entry appends an entry of key, whose record is r, unless nothing is in a window.
func (x *exporter) entry(rs *records, key []byte, r keytable.Record) {
	w := r.Words()
	newest := keytable.Time(w[wordNewest])
	if !snapshot.ValidTime(newest, int64(limit.MaxSpan)) || rs.over(w, newest, x.now) {
		return
	}
	start := len(x.Buf)
	x.key(key, newest, r.Flag())
	for i := range rs.counters {
		m := &rs.counters[i]
		x.Buf = m.AppendState(x.Buf, w[m.at:], m.blocks, newest)
	}
	if len(x.Buf)-start <= largeEntry || len(rs.counters) == 1 {
		return
	}
	x.Buf = x.Buf[:start]
	for i := range rs.counters {
		m := &rs.counters[i]
		if m.Used(w[m.at:], m.blocks, newest) == 0 {
			continue
		}
		x.key(key, newest, r.Flag())
		x.Buf = append(x.Buf, make([]byte, i)...)
		x.Buf = m.AppendState(x.Buf, w[m.at:], m.blocks, newest)
		x.Buf = append(x.Buf, make([]byte, len(rs.counters)-1-i)...)
		x.Split(start)
	}
}

// key appends the beginning of an entry.
func (x *exporter) key(key []byte, newest int64, cut bool) {
	x.Buf = snapshot.AppendBytes(x.Buf, key)
	x.Buf = binary.AppendVarint(x.Buf, x.now-newest)
	x.Buf = snapshot.AppendBool(x.Buf, cut)
}

// over reports whether nothing that the words w have counted is in a window at now.
// Nothing is over where times may go back from key to key, as in replay.
func (rs *records) over(w []uint64, newest, now int64) bool {
	if rs.budget.Limit() == unbounded {
		return false
	}
	for i := range rs.counters {
		m := &rs.counters[i]
		if d := m.Reset(w[m.at:], m.blocks, newest); int64(d) > now-newest {
			return false
		}
	}
	return true
}

// importAhead is how many keys are read before the first of them is restored. Meanwhile
// the cache lines of their records are loaded.
const importAhead = 8

// A countsImport is the import of a chunk of counts.
type countsImport struct {
	*chunkImport
	from  *records         // of the layout that the chunk has
	to    *records         // nil if there is no such rule any more
	heirs []*recordCounter // what each counter of to takes its counts over from
}

// A savedKey is what was read of a key.
type savedKey struct {
	w   []uint64 // a record of from
	cut bool     // whether a bucket was
}

// counts restores the counts of one rule.
func (in *chunkImport) counts() error {
	mr, was := in.rule(), in.r.Bytes(in.r.Len())
	c := &countsImport{chunkImport: in}
	if in.r.Failed() {
		return errHead
	}
	l, resolution, err := savedLayoutOf(was, in.m.hashValue(nil))
	if err != nil {
		return err
	}
	if mr != nil {
		c.to = mr.records
		keytable.Raise(&c.to.now, in.now)
		if zone := c.to.layout.zone; limit.ZoneOf(zone) == limit.ZoneOf(l.zone) {
			l.zone = zone
		}
	}
	if c.from, err = looseRecords(l, resolution); err != nil {
		return err
	}
	keys := make([]savedKey, importAhead)
	for i := range keys {
		keys[i].w = make([]uint64, c.from.words)
	}
	var table *keytable.Table
	if c.to != nil {
		table = c.to.table
		for i := range c.to.counters {
			c.heirs = append(c.heirs, c.to.heir(i, c.from))
		}
	}
	if damaged := keytable.Import(table, in.r, keys, c.read, c.restore); damaged >= 0 {
		in.at = damaged
		return errEntry
	}
	return nil
}

// looseRecords returns records of a layout without a table: for the words of one
// record outside, with memory for all that they can hold.
func looseRecords(l layout, resolution time.Duration) (*records, error) {
	counters, err := l.counters(resolution)
	if err != nil {
		return nil, err
	}
	rs := &records{layout: l, budget: keytable.NewBudget(unbounded)}
	rs.place(counters)
	return rs, nil
}

// read reads an entry after its key, and reports whether it is to be restored.
func (c *countsImport) read(k *savedKey) bool {
	newest := c.written - c.r.Varint()
	k.cut = c.r.UpTo(1) == 1
	if !snapshot.ValidTime(newest, int64(limit.MaxSpan)) {
		c.r.Fail()
	}
	if c.r.Failed() {
		return false
	}
	c.from.clear(k.w)
	clear(k.w)
	for i := range c.from.counters {
		m := &c.from.counters[i]
		m.ReadState(c.r, k.w[m.at:], m.blocks, newest, c.now)
	}
	newest = min(newest, c.now)
	k.w[wordNewest] = keytable.Stamp(newest)
	switch {
	case c.r.Failed():
	case c.to == nil:
		c.done.Unknown++
	case c.to.budget.Limit() != unbounded && c.from.over(k.w, newest, c.now):
		c.done.Expired++
	default:
		return true
	}
	return false
}

// restore puts a key into the table.
func (c *countsImport) restore(hash uint64, key string, k *savedKey) {
	r, state := c.to.table.Add(hash, key) // most are new
	switch state {
	case keytable.NoMemory:
		c.to.toSketch(hash, c.from, k.w)
		c.done.Refused++
		return
	case keytable.Added:
		r.Words()[wordNewest] = keytable.Stamp(c.to.expired.Load())
		c.to.markBanned(r, hash, key)
	}
	w := r.Words()
	if c.into(w, k.w) || state == keytable.Added {
		if k.cut {
			r.SetFlag()
		}
		c.done.Keys++
	} else {
		c.done.Kept++
	}
	w[wordNewest] = max(w[wordNewest], k.w[wordNewest])
	c.to.cut(r)
	r.Unlock()
}

// into restores each counter of w that has nothing counted from the words of a record that
// was read, and reports whether there was one.
func (c *countsImport) into(w, from []uint64) (any bool) {
	t, at := keytable.Time(from[wordNewest]), keytable.Time(w[wordNewest])
	for i := range c.to.counters {
		m, o := &c.to.counters[i], c.heirs[i]
		if o == nil || o.Used(from[o.at:], o.blocks, t) == 0 || m.Used(w[m.at:], m.blocks, at) != 0 {
			continue
		}
		any = true
		m.Clear(w[m.at:], m.blocks)
		m.carry(w, o, from)
	}
	return any
}

// A savedLayout is the JSON of a layout, in the head of a chunk of counts.
type savedLayout struct {
	Resolution time.Duration
	Algorithm  string
	Limits     []Limit
	Keep       []uint64
	Most       uint64

	// Zone and Offset are the name of the zone and its offset in January, in seconds.
	Zone   string
	Offset int

	// Ban is what is counted for the ban, or nil.
	Ban *savedBan
}

type savedBan struct {
	banLayout
	Hash uint64 `json:",omitempty"` // of no value: another with another secret
}

// save returns l as a savedLayout. none is the hash of no value.
func (l *layout) save(resolution time.Duration, none uint64) []byte {
	zone := limit.ZoneOf(l.zone)
	s := savedLayout{Resolution: resolution, Algorithm: l.algorithm.String(), Limits: l.limits, Keep: l.keep, Most: l.most, Zone: zone.Name, Offset: zone.January}
	if l.ban.Span > 0 {
		s.Ban = &savedBan{banLayout: l.ban}
		if l.ban.Of == Distinct {
			s.Ban.Hash = none
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is nothing in it that cannot be marshalled
	}
	return b
}

// savedLayoutOf returns the layout that was saved, and the resolution of times. Values
// that were hashed with another secret, which has another hash of none, are those of no
// field.
func savedLayoutOf(b []byte, none uint64) (layout, time.Duration, error) {
	var s savedLayout
	if json.Unmarshal(b, &s) != nil {
		return layout{}, 0, errHead
	}
	algorithm, err := limit.AlgorithmNamed(s.Algorithm)
	if err != nil || !s.valid(algorithm) {
		return layout{}, 0, errHead
	}
	l := layout{algorithm: algorithm, limits: s.Limits, keep: s.Keep, most: s.Most}
	if s.Zone != "" || s.Offset != 0 {
		// If the zone is not known here any more, its January has to do: only the end
		// of a window that began after a time to which the clock was set back depends on it.
		l.zone = time.FixedZone(s.Zone, s.Offset)
		if zone, err := time.LoadLocation(s.Zone); err == nil && s.Zone != "" {
			l.zone = zone
		}
	}
	if s.Ban != nil {
		if l.ban = s.Ban.banLayout; l.ban.Of != Distinct || s.Ban.Hash != none {
			l.ban.Field = ""
		}
	}
	return l, s.Resolution, nil
}

func (s *savedLayout) valid(a Algorithm) bool {
	most := maxN(a)
	if len(s.Keep) != len(s.Limits) || len(s.Limits) == 0 && s.Ban == nil || s.Most > most ||
		s.Resolution < 0 || s.Resolution > limit.MaxSpan || s.Offset < -26*3600 || s.Offset > 26*3600 {
		return false
	}
	for i, l := range s.Limits {
		var wrong invalid.Fields
		if l.validate("limit", a, &wrong); len(wrong) > 0 || s.Keep[i] < l.N || s.Keep[i] > most {
			return false
		}
	}
	return s.Ban == nil || s.Ban.After <= limit.MaxLog && s.Ban.Of <= Distinct && limit.ValidSpan(s.Ban.Span)
}
