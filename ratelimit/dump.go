package ratelimit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/internal/snapshot"
)

// The chunks of a Memory, see internal/snapshot, are those of the limit counters of
// one rule, of bans, of the traffic of a rule with an Adapt, and of the secret of
// long keys. A rule is identified by its name and by the shape of its key, so that
// counters are not taken for those of other keys.

const (
	// largeEntry is the length from which the entry of a key is cut. The
	// difference from the mebibyte that is promised is for one log of 65,535
	// times that are no nearer than milliseconds.
	largeEntry = 256 << 10

	// oldBansVersion is the version of the format in which chunks of bans had no
	// checksum. They can still be imported.
	oldBansVersion = 3
)

// Export yields all that l knows, for a snapshot: of each key under each rule the
// newest time it was judged at and what its limits and the counter of its ban
// hold; of each ban all that is known, those that are over and remembered
// included; and what a rule with an Adapt has measured. now is the time of the
// caller, as [Limiter.Now] has it; what is in no window any more then is left
// out, unless l has NoBudget.
//
// The chunks are for [Limiter.Import], each by itself, in this order, except that
// those after the first may be imported at the same time. Each has a checksum. Most
// have 64 KiB, none more than a mebibyte. A chunk is valid until the loop goes on.
// Protect chunks like what they hold: keys, and the secret of the digests of keys of
// more than a kibibyte.
//
// Decisions go on meanwhile. A new key waits while those of its page, some
// hundreds, are listed; any other waits while its own record is written down. The
// state of a key under a rule, all limits and the ban's counter, is of one moment;
// that of different keys or rules is not. Bans come first: a ban that begins
// meanwhile may be missing, and what had counted toward it is not left behind.
// Rules may be updated; what was exported under the ones before then may come
// again, and counts once.
//
// Statistics are left out, and what a sketch counted for keys without memory, since
// a sketch does not know its keys: after a restart they begin at 0, as any key that was
// evicted. So a flood that fills the budget with protected keys is undercounted for one
// span after a restart, by N for each key without a record.
//
// Another store than memory has nothing to export. The complexity is O(k) where k is the number of keys under all rules: a million
// keys take about a tenth of a second, and their Import a second.
func (l *Limiter) Export(now time.Time) iter.Seq[[]byte] {
	if l.memory == nil {
		return func(func([]byte) bool) {}
	}
	return l.memory.Export(now)
}

func (m *memory) Export(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		x := &dumper{Writer: snapshot.NewWriter(snapshot.Secret, nanos(now), yield), m: m, now: nanos(now), yield: yield}
		_ = x.secret() && x.bans() && x.adapts() && x.counts()
	}
}

// Imported are the numbers of what a chunk held, by what became of it; see
// [lately.Imported]. Counters of keys for which there is no memory share a sketch.
type Imported = lately.Imported

// Import restores what a chunk of [Limiter.Export] has, of this or another
// process. It is meant for an empty l, before the first decision; it does no harm
// later. now is the time of the caller, as [Limiter.Now] has it.
//
// If a rule counts as it did, what is restored decides at all times from now on
// as the original would have. If its limits, algorithm or ban have changed, its
// counts are carried as with [Limiter.Update]. A rule is the same by its name and
// its key; the counts of any other are left out. What a later Update may have
// kept for limits that were higher before is not known any more.
//
// If the clock was set back since the export, nothing lasts longer for it: what
// was counted after now counts at now, and a ban has the time left that it had at
// the export. A ban that a rule began is no longer than that rule's longest
// from now on.
//
// What l knows already stays: importing a chunk twice changes nothing, and a key
// that was judged since keeps what it has counted since. When the budget is
// spent, keys are evicted as usual, the unprotected that came first; keys without
// memory share a sketch.
//
// The error says what is wrong with the chunk; what came before that in it has
// been restored. Memory is bounded by the chunk's length and the budget, whatever
// its bytes. Update waits meanwhile, decisions do not.
func (l *Limiter) Import(now time.Time, chunk []byte) (Imported, error) {
	if l.memory == nil {
		return Imported{}, errors.New("ratelimit: import: the limits are in a shared store: must be in memory")
	}
	return l.memory.Import(now, chunk)
}

func (m *memory) Import(now time.Time, chunk []byte) (Imported, error) {
	kind, r, written, err := openChunk(chunk)
	if err != nil {
		return Imported{}, fmt.Errorf("ratelimit: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := &undumper{m: m, rules: m.rules.Load(), r: r, now: nanos(now), written: written, left: r.Len()}
	switch kind {
	case snapshot.Counts:
		err = u.counts()
	case snapshot.Bans:
		err = u.bans()
	case snapshot.Adapt:
		err = u.adapt()
	case snapshot.Secret:
		err = u.secret()
	}
	if err != nil {
		return u.done, fmt.Errorf("ratelimit: chunk is damaged after %d of %d bytes: %w", r.Size()-u.left, len(chunk), err)
	}
	return u.done, nil
}

// openChunk is snapshot.Open for the chunks of a Memory, and for chunks of bans of
// an earlier version.
func openChunk(chunk []byte) (kind snapshot.Kind, r *snapshot.Reader, written int64, err error) {
	if len(chunk) > 2 && snapshot.Kind(chunk[0]) == snapshot.Bans && chunk[1] == oldBansVersion {
		kind, r = snapshot.Bans, snapshot.NewReader(chunk)
		r.Byte()
		r.Byte()
		written = r.Varint()
	} else if kind, r, written, err = snapshot.Open(chunk, snapshot.Counts, snapshot.Bans, snapshot.Adapt, snapshot.Secret); err != nil {
		return 0, nil, 0, err
	}
	if r.Failed() || !snapshot.ValidTime(written, int64(MaxSpan)) {
		return 0, nil, 0, errors.New("chunk is damaged in its header")
	}
	return kind, r, written, nil
}

// A dumper exports what a Memory knows.
type dumper struct {
	*snapshot.Writer

	m     *memory
	now   int64
	yield func([]byte) bool

	keys  []byte   // of a page, each with its length in front
	large [][]byte // further chunks, with parts of a key that is cut
}

// flush yields the chunk if it has entries, and the parts of large keys.
func (x *dumper) flush() bool {
	ok := x.Flush()
	for _, part := range x.large {
		ok = ok && x.yield(snapshot.Seal(part))
	}
	x.large = nil
	return ok
}

// An undumper restores what a chunk has.
type undumper struct {
	m       *memory
	rules   *memoryRules
	r       *snapshot.Reader
	now     int64
	written int64
	left    int // bytes from where what is read now begins
	done    Imported
}

// secret exports by what secret long keys are known.
func (x *dumper) secret() bool {
	x.Buf = append(x.Buf, x.m.secret.Load()[:]...)
	return x.flush()
}

// secret takes over by what secret long keys are known, if no key is known yet.
func (u *undumper) secret() error {
	var secret [32]byte
	for i := range secret {
		secret[i] = u.r.Byte()
	}
	if u.r.Failed() || u.r.Len() > 0 {
		return errors.New("there is no secret")
	}
	for _, mr := range u.rules.rules {
		if mr.records.table.Len() > 0 {
			return nil
		}
	}
	if u.m.bans.Len() == 0 {
		u.m.secret.Store(&secret)
	}
	return nil
}

// appendRule appends what a rule is known by: its name, and the shape of its key.
func appendRule(dst []byte, r *Rule) []byte {
	dst = snapshot.AppendBytes(dst, r.Name)
	return snapshot.AppendBytes(dst, r.Key.AppendShape(nil))
}

// rule reads what appendRule has appended. It is nil if there is no such rule.
func (u *undumper) rule() *memoryRule {
	name, shape := u.r.Bytes(u.r.Len()), u.r.Bytes(u.r.Len())
	mr := u.rules.named(string(name))
	if mr == nil || string(mr.Key.AppendShape(nil)) != string(shape) {
		return nil
	}
	return mr
}

// A chunk of traffic has one rule, its Adapt, when it is measured next and was
// measured last, N, the limit of the row that holds, the smoothed average, and
// the slots of the traffic: how long before the chunk was written each begins,
// and its count.

// adapts exports what the rules with an Adapt have measured.
func (x *dumper) adapts() bool {
	for _, mr := range x.m.rules.Load().rules {
		if mr.adapt == nil {
			continue
		}
		x.Begin(snapshot.Adapt, x.now)
		x.Buf = appendRule(x.Buf, mr.Rule)
		x.Buf = snapshot.AppendBytes(x.Buf, appendAdapt(nil, &mr.adapt.config))
		x.EndHead()
		x.adapt(mr.adapt)
		if !x.flush() {
			return false
		}
	}
	return true
}

func (x *dumper) adapt(ad *adapter) {
	ad.mu.Lock()
	defer ad.mu.Unlock()
	next := ad.next.Load()
	if next == math.MinInt64 {
		return // nothing has been judged
	}
	b := binary.AppendVarint(x.Buf, next-x.now)
	b = binary.AppendVarint(b, ad.last-x.now)
	b = binary.AppendUvarint(b, ad.n.Load())
	b = binary.AppendUvarint(b, ad.steps.limit())
	b = binary.AppendUvarint(b, math.Float64bits(ad.smooth))
	for t, count := range ad.traffic.SlotsAt(time.Unix(0, x.now)) {
		if count > 0 {
			b = binary.AppendVarint(b, x.now-t.UnixNano())
			b = binary.AppendUvarint(b, count)
		}
	}
	x.Buf = b
}

// appendAdapt appends an Adapt: the same bytes for those that are equal.
func appendAdapt(dst []byte, a *Adapt) []byte {
	numbers := []uint64{uint64(a.Span), a.Above, math.Float64bits(a.Hysteresis), uint64(a.Smooth)}
	for _, s := range a.Steps {
		numbers = append(numbers, math.Float64bits(s.Below), s.Limit)
	}
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

var errNoTraffic = errors.New("there is no traffic of a rule")

// adapt restores what a rule has measured, if it has measured nothing yet.
func (u *undumper) adapt() error {
	mr := u.rule()
	config := u.r.Bytes(u.r.Len())
	next, last := u.written+u.r.Varint(), u.written+u.r.Varint()
	n, limit, smooth := u.r.Uvarint(), u.r.Uvarint(), math.Float64frombits(u.r.Uvarint())
	if u.r.Failed() || !snapshot.ValidTime(next, int64(MaxSpan)) || !snapshot.ValidTime(last, int64(MaxSpan)) || !(smooth >= -1 && smooth < math.MaxUint32) {
		return errNoTraffic
	}
	if mr == nil || mr.adapt == nil || string(appendAdapt(nil, &mr.adapt.config)) != string(config) {
		u.done.Unknown++
		return nil
	}
	ad := mr.adapt
	ad.mu.Lock()
	defer ad.mu.Unlock()
	if ad.next.Load() != math.MinInt64 {
		u.done.Kept++
		return nil
	}
	for u.r.Len() > 0 {
		t, count := u.written-u.r.Varint(), u.r.Uvarint()
		if u.r.Failed() || !snapshot.ValidTime(t, int64(MaxSpan)) {
			return errNoTraffic
		}
		ad.traffic.AddAt(time.Unix(0, min(t, u.now)), count)
	}
	ad.steps.moveTo(limit)
	ad.n.Store(min(n, max(ad.config.most(), mr.Limits[0].N)))
	ad.smooth, ad.last = smooth, min(last, u.now)
	ad.next.Store(min(next, u.now+int64(ad.config.span()/adaptSlots)))
	return nil
}
