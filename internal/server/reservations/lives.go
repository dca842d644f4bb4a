package reservations

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/ratelimit"
)

// Lives determines which reservations of earlier processes are in the counts that this process has restored: those made
// before the snapshot was written, under rules that were not changed or reset since. Servers that share a store do not need it: the store
// itself has the charges. Make one with [NewLives].
type Lives struct {
	current uint64      // identifies this process
	ended   atomic.Bool // no decision is under way, nor will be

	mu      sync.Mutex
	earlier []life               // that have written the snapshots before, the oldest first; for ids up to MaxHold old
	since   map[string]ruleSince // by name; of rules that are in force
}

// A life says which reservations of one process its last snapshot contains.
type life struct {
	ID   uint64    `json:"id,string"`
	Kept time.Time `json:"kept"` // reservations until then are in the counts
	Lost time.Time `json:"lost"` // reservations from then on are not; between the two it is unknown
}

// A ruleSince is since when the counts of a rule are of that sentence, and no key was reset.
type ruleSince struct {
	Sentence string    `json:"sentence"`
	Since    time.Time `json:"since"`
}

// A livesRecord is the record of Lives in a snapshot.
type livesRecord struct {
	Lives []life               `json:"lives"`
	Rules map[string]ruleSince `json:"rules"`
}

// MaxHold is the longest time for which an id can be valid.
const MaxHold = 24 * time.Hour

// maxLives is how many earlier processes are known, for servers that restart all the time.
const maxLives = 64

// NewLives returns the Lives of a process that begins.
func NewLives() *Lives {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return &Lives{current: binary.LittleEndian.Uint64(b[:])}
}

// Current returns the number of this process.
func (l *Lives) Current() uint64 { return l.current }

// End notes that no decision is under way, and that none will be made: the next snapshot has all reservations.
func (l *Lives) End() { l.ended.Store(true) }

// Use notes that the rules of set are in force at now.
func (l *Lives) Use(now time.Time, set *ratelimit.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := make(map[string]ruleSince, len(set.Rules()))
	for _, r := range set.Rules() {
		s := ruleSince{sentence.Limit(r), now}
		if was, ok := l.since[r.Name]; ok && was.Sentence == s.Sentence {
			s = was
		}
		since[r.Name] = s
	}
	l.since = since
}

// Reset notes that a key of a rule is reset at now. Reservations under the rule of earlier processes are void then.
func (l *Lives) Reset(now time.Time, rule string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.since[rule]; ok {
		s.Since = now
		l.since[strings.Clone(rule)] = s // the map keeps it, and the session does not own its bytes
	}
}

// keptMargin is how long a decision may take from reading the clock until it has charged.
const keptMargin = time.Second

// Save adds the record of a snapshot that was begun at that time, and whose limits are written at now.
func (l *Lives) Save(w *state.Writer, began, now time.Time) {
	kept := began
	if !l.ended.Load() {
		kept = kept.Add(-keptMargin)
	}
	l.mu.Lock()
	record := livesRecord{append(slices.Clip(l.earlier), life{l.current, kept, now.Add(keptMargin)}), maps.Clone(l.since)}
	l.mu.Unlock()
	w.JSON(state.Lives, record)
}

// Restore reads a record of the snapshot, at now.
func (l *Lives) Restore(now time.Time, record []byte) error {
	var r livesRecord
	if err := json.Unmarshal(record, &r); err != nil {
		return fmt.Errorf("record of earlier processes: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.earlier = slices.DeleteFunc(r.Lives, func(x life) bool { return now.Sub(x.Lost) > MaxHold })
	l.earlier = l.earlier[max(0, len(l.earlier)-maxLives):]
	maps.DeleteFunc(r.Rules, func(name string, was ruleSince) bool { return l.since[name].Sentence != was.Sentence })
	maps.Copy(l.since, r.Rules)
	return nil
}

// Judge makes t, of a reservation of that process, one that can be settled in this one. If the counts do not have its charge, since
// the process was killed before it wrote a snapshot, all that is settled is charged. If it is unknown whether they have it, nothing is settled.
func (l *Lives) Judge(of uint64, t *batch.Ticket) {
	if of == l.current {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, i := time.Unix(0, t.At), slices.IndexFunc(l.earlier, func(x life) bool { return x.ID == of })
	switch {
	case i < 0 || at.After(l.earlier[i].Lost):
		t.Cost = 0 // the charge is lost: all that is settled is charged
	case at.After(l.earlier[i].Kept):
		t.Charges = nil
	default:
		t.Charges = slices.DeleteFunc(t.Charges, func(c batch.Charge) bool {
			s, ok := l.since[c.Rule]
			return !ok || !s.Since.Before(at)
		})
	}
	for i := range t.Charges {
		t.Charges[i].Mark = batch.AnyMark
	}
}
