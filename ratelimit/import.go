package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/internal/snapshot"
)

// Import restores a chunk of [Limiter.Export], of this or another process. Use it on a
// Limiter that has decided nothing. On any other it does no harm: what l knows already
// stays, and a key that was judged since keeps what it has counted since. Importing a
// chunk twice changes nothing. now is the current time of the caller, as [Limiter.Now]
// has it.
//
// Import the first chunk first. The others may be imported in any order, and by several
// goroutines at the same time, which is faster: each core restores more than a million
// keys a second.
//
// If a rule counts as it did, later decisions are those that would have been made without
// a restart. If its limits, algorithm or ban have changed, its counts are carried as by
// [Limiter.Update]. A rule is identified by its name and its key; the counts of any other
// are left out. Two things that an Update keeps are not known after a restart: counts
// beyond the present limits, which matter when these are raised; and, when the algorithm
// was changed less than a span of the old limits ago, what those had counted. In a window
// that contains such a change and a restart, the old limits may have admitted what they
// admit, and the new ones what they do: at most the sum of both, instead of the lesser.
//
// If the clock was set back since the export, nothing is held for longer: what was
// counted after now counts at now, and a ban has as long left as it had at the export. A
// ban that a rule began is no longer than that rule's longest from now on.
//
// The numbers say what became of what the chunk held. When the budget is spent, keys are
// evicted as usual, the unprotected that came first; keys without memory share a sketch.
//
// The error says that the chunk is damaged. If its checksum is wrong, nothing was
// restored, else what came before the damage. Memory is bounded by the length of the
// chunk and the budget, whatever its bytes. Update waits meanwhile, decisions do not.
func (l *Limiter) Import(now time.Time, chunk []byte) (lately.Imported, error) {
	if l.memory == nil {
		return lately.Imported{}, errors.New("ratelimit: import: the limits are in a shared store: must be in memory")
	}
	return l.memory.Import(now, chunk)
}

func (m *memory) Import(now time.Time, chunk []byte) (lately.Imported, error) {
	kind, r, written, err := openChunk(chunk, snapshot.Counts, snapshot.Bans, snapshot.Adapt, snapshot.Secret)
	if err != nil {
		return lately.Imported{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	in := &chunkImport{m: m, rules: m.rules.Load(), r: r, now: nanos(now), written: written, at: r.Offset()}
	switch kind {
	case snapshot.Counts:
		err = in.counts()
	case snapshot.Bans:
		err = in.bans()
	case snapshot.Adapt:
		err = in.adapt()
	case snapshot.Secret:
		err = in.secret()
	}
	if err != nil {
		err = fmt.Errorf("ratelimit: chunk is damaged after %d of %d bytes: %w", in.at, len(chunk), err)
	}
	return in.done, err
}

// openChunk is snapshot.Open for the chunks of this package.
func openChunk(chunk []byte, kinds ...snapshot.Kind) (snapshot.Kind, *snapshot.Reader, int64, error) {
	kind, r, written, err := snapshot.Open(chunk, kinds...)
	if err == nil && !snapshot.ValidTime(written, int64(MaxSpan)) {
		err = errors.New("chunk is damaged in its header")
	}
	if err != nil {
		return 0, nil, 0, fmt.Errorf("ratelimit: %w", err)
	}
	return kind, r, written, nil
}

// A chunkImport is the import of one chunk.
type chunkImport struct {
	m       *memory
	rules   *memoryRules
	r       *snapshot.Reader
	now     int64
	written int64
	at      int // offset of the entry that is read
	done    lately.Imported
}

// secret makes the secret that of long keys, if no key is known yet.
func (in *chunkImport) secret() error {
	secret := in.r.Next(32)
	if in.r.Failed() || in.r.Len() > 0 {
		return errors.New("there is no secret")
	}
	for _, mr := range in.rules.rules {
		if mr.records.table.Len() > 0 {
			return nil
		}
	}
	if in.m.bans.Len() == 0 {
		in.m.secret.Store((*[32]byte)(append([]byte(nil), secret...)))
	}
	return nil
}

// rule reads what appendRule has appended. It is nil if there is no such rule.
func (in *chunkImport) rule() *memoryRule {
	name, shape := in.r.Bytes(in.r.Len()), in.r.Bytes(in.r.Len())
	mr := in.rules.named(string(name))
	if mr == nil || string(mr.Key.AppendShape(nil)) != string(shape) {
		return nil
	}
	return mr
}

var errNoTraffic = errors.New("there is no traffic of a rule")

// adapt restores what a rule has measured, if it has measured nothing yet.
func (in *chunkImport) adapt() error {
	mr, r := in.rule(), in.r
	config := r.Bytes(r.Len())
	next, last := in.written+r.Varint(), in.written+r.Varint()
	n, limit, smooth := r.Uvarint(), r.Uvarint(), math.Float64frombits(r.Uvarint())
	if r.Failed() || !snapshot.ValidTime(next, int64(MaxSpan)) || !snapshot.ValidTime(last, int64(MaxSpan)) || !(smooth >= -1 && smooth < math.MaxUint32) {
		return errNoTraffic
	}
	if mr == nil || mr.adapt == nil || fmt.Sprint(mr.adapt.config) != string(config) {
		in.done.Unknown++
		return nil
	}
	ad := mr.adapt
	ad.mu.Lock()
	defer ad.mu.Unlock()
	if ad.next.Load() != math.MinInt64 {
		in.done.Kept++
		return nil
	}
	for r.Len() > 0 {
		t, count := in.written-r.Varint(), r.Uvarint()
		if r.Failed() || !snapshot.ValidTime(t, int64(MaxSpan)) {
			return errNoTraffic
		}
		ad.traffic.AddAt(time.Unix(0, min(t, in.now)), count)
	}
	for ad.row < len(ad.config.Steps) && ad.config.limit(ad.row) != limit {
		ad.row++
	}
	ad.n.Store(min(n, max(ad.config.most(), mr.Limits[0].N)))
	ad.smooth, ad.last = smooth, min(last, in.now)
	ad.next.Store(min(next, in.now+int64(ad.config.span()/adaptSlots)))
	return nil
}
