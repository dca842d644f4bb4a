package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// The types of the records that Save writes, and of those that are appended to the journal.
const (
	recordBan     = 'b' // a banLine, in the journal
	recordLimits  = 'l' // a chunk of ratelimit.Limiter.Export
	recordCounts  = 't' // a counterRecord as JSON, a NUL byte, and a chunk of window.Table.Export, if it has keys
	recordHot     = 'h' // the name of a hot rule, a NUL byte, and a chunk of hotkey.Detector.Export
	recordHotKey  = 'k' // a hotRecord
	recordHotUses = 'u' // a chunk of window.Table.Export: the uses of keys that were hot
	recordIgnored = 'i' // an api.RuleKey: a key that is ignored by hand
	recordHistory = RecordHistory
	recordEnded   = 'e' // an endedBan
	recordCaller  = 'r' // a chunk of throttle.Limiter.Export: limits that callers brought
	recordSettled = 's' // a chunk of settledIDs.export
	recordLives   = RecordLives
)

// RecordHistory is the type of records of the history of rates, which changes every minute: a savedHistory.
const RecordHistory = 'g'

// RecordLives is the type of the record of what the snapshot has of reservations, which has the time at which it was
// written: a livesRecord.
const RecordLives = 'v'

// A counterRecord names a counter, with what its counts depend on.
type counterRecord struct {
	Name   string   `json:"name"`
	Fields []string `json:"fields"`
	Made   bool     `json:"made,omitempty"`
}

// A saver adds records until the first error.
type saver struct {
	add func(typ byte, data []byte) error
	err error
}

func (s *saver) record(typ byte, data []byte) {
	if s.err == nil {
		s.err = s.add(typ, data)
	}
}

// json adds a record with v as JSON.
func (s *saver) json(typ byte, v any) {
	data, err := json.Marshal(v)
	s.err = cmp.Or(s.err, err)
	s.record(typ, data)
}

// chunks adds a record for each chunk.
func (s *saver) chunks(typ byte, chunks iter.Seq[[]byte]) {
	for chunk := range chunks {
		if s.record(typ, chunk); s.err != nil {
			return
		}
	}
}

// counts adds a record for each chunk of c, or one without keys, since a counter that was made has to be made again.
func (s *saver) counts(c *counter, now time.Time) {
	head, err := json.Marshal(counterRecord{c.Name, c.Key.Fields(), c.dynamic})
	s.err = cmp.Or(s.err, err)
	head = append(head, 0)
	table, now := c.counts(now)
	empty := true
	for chunk := range table.ExportAt(now) {
		empty = false
		if s.record(recordCounts, slices.Concat(head, chunk)); s.err != nil {
			return
		}
	}
	if empty {
		s.record(recordCounts, head)
	}
}

// reservations adds the records about reservations. They are behind those of the limits: an id is remembered as settled
// before its charge is corrected, so they have all that the limits have.
func (s *saver) reservations(e *Engine, began time.Time) {
	s.chunks(recordSettled, func(yield func([]byte) bool) { e.settled.export(began, yield) })
	data, err := e.lives.record(began, e.Now())
	s.err = cmp.Or(s.err, err)
	s.record(recordLives, data)
}

// Save adds records of the counts, the bans and the history of rates, for the Restorer of
// another engine. It does not block decisions. Times are relative to now, the present: if nothing has
// changed since, records for the same time are the same, but for the history.
func (e *Engine) Save(now time.Time, add func(typ byte, data []byte) error) error {
	s := &saver{add: add}
	s.chunks(recordLimits, e.limiter.Export(now))
	if !e.Shared() {
		s.reservations(e, now)
	}
	s.chunks(recordCaller, e.throttle.Export(now))
	for _, h := range e.rules.Load().hot {
		for chunk := range h.detector.Export(now) {
			s.record(recordHot, append([]byte(h.Name+"\x00"), chunk...))
		}
	}
	for _, k := range e.hot.All("") {
		if !k.Until.IsZero() { // else the rules file has it
			s.json(recordHotKey, hotRecord{k.HotKey(now), []byte(k.ID), now})
		}
	}
	s.chunks(recordHotUses, e.past.uses.ExportAt(now))
	for _, k := range *e.ignored.Load() {
		s.json(recordIgnored, k)
	}
	s.chunks(recordHistory, e.history.Export())
	for _, c := range e.rules.Load().counters {
		s.counts(c, now)
	}
	e.banMu.Lock()
	ended := slices.Collect(e.ended.left())
	e.banMu.Unlock()
	for _, b := range ended {
		s.json(recordEnded, b)
	}
	return s.err
}

// A Restorer restores records that Save added, in their order, before the first decision;
// call Wait in the end. Records of rules and counters that no longer exist are left out.
// Rules that have changed keep their counts as in a reload.
//
// As many goroutines as there are cores import chunks, so the error of a chunk may be
// returned by a later call of Record, or by Wait.
type Restorer struct {
	e       *Engine
	begun   bool // a chunk has been imported
	workers sync.WaitGroup
	slots   chan struct{} // as many as there may be workers

	mu  sync.Mutex // for what follows, until Wait returns
	err error      // the first

	Limits, Counts window.Imported
	Unshared       int // records of limits and bans, which are left out because they are in a store
}

// Restorer returns a Restorer for e.
func (e *Engine) Restorer() *Restorer {
	return &Restorer{e: e, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Record restores one record.
func (r *Restorer) Record(record journal.Record) error {
	if err := r.failed(); err != nil {
		return err
	}
	data := record.Data
	switch record.Type {
	case recordLimits:
		if r.e.Shared() {
			r.Unshared++
			return nil
		}
		return r.restore(&r.Limits, data, r.e.limiter.Import)
	case recordBan:
		return r.ban(data)
	case recordEnded:
		return r.ended(data)
	case recordCounts:
		return r.counts(data)
	case recordSettled:
		return r.e.settled.restore(r.e.Now(), data)
	case recordLives:
		return r.e.lives.restore(r.e.Now(), data)
	case recordCaller:
		return r.restore(new(window.Imported), data, r.e.throttle.Import)
	case recordHot:
		name, chunk, _ := bytes.Cut(data, []byte{0})
		for _, h := range r.e.rules.Load().hot {
			if h.Name == string(name) {
				return r.restore(new(window.Imported), chunk, h.detector.Import)
			}
		}
		return nil // of a rule that does not exist any more
	case recordHotUses:
		return r.restore(new(window.Imported), data, r.e.past.uses.ImportAt)
	case recordHotKey:
		return r.hotKey(data)
	case recordIgnored:
		return r.ignore(data)
	case recordHistory:
		return r.e.history.Import(data)
	}
	return fmt.Errorf("record of the unknown type %q", record.Type)
}

// restore begins to import a chunk. The first is imported at once: it has the secret of the
// digests in later ones.
func (r *Restorer) restore(total *window.Imported, chunk []byte, load func(time.Time, []byte) (window.Imported, error)) error {
	work := func(chunk []byte) {
		done, err := load(r.e.Now(), chunk)
		r.mu.Lock()
		defer r.mu.Unlock()
		total.Add(done)
		r.err = cmp.Or(r.err, err)
	}
	if !r.begun {
		r.begun = true
		work(chunk)
	} else {
		chunk = bytes.Clone(chunk)
		r.slots <- struct{}{}
		r.workers.Go(func() {
			work(chunk)
			<-r.slots
		})
	}
	return r.failed()
}

func (r *Restorer) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Wait returns when all records have been restored.
func (r *Restorer) Wait() error {
	r.workers.Wait()
	return r.err
}

// counts restores counts of the counter that the record names.
func (r *Restorer) counts(data []byte) error {
	name, chunk, _ := bytes.Cut(data, []byte{0})
	c, err := r.counter(name)
	switch {
	case err != nil:
		return err
	case c == nil || len(chunk) == 0:
		return nil
	}
	table, _ := c.counts(time.Time{})
	return r.restore(&r.Counts, chunk, table.ImportAt)
}

// counter finds the counter of a counterRecord. It is nil if there is none, or if that counts other keys; windows
// that it has no more are left out.
func (r *Restorer) counter(record []byte) (*counter, error) {
	var was counterRecord
	if err := json.Unmarshal(record, &was); err != nil {
		return nil, fmt.Errorf("record of a counter: %w", err)
	}
	c := r.e.rules.Load().counter(was.Name)
	if c == nil && was.Made {
		var err error
		if c, err = r.e.createCounter(was.Name); err != nil {
			return nil, err
		}
	}
	if c == nil || !slices.Equal(c.Key.Fields(), was.Fields) {
		return nil, nil
	}
	return c, nil
}

// ended restores the end of a ban by hand.
func (r *Restorer) ended(data []byte) error {
	var b endedBan
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("record of the end of a ban: %w", err)
	}
	r.e.banMu.Lock()
	defer r.e.banMu.Unlock()
	r.e.ended.add(b)
	return nil
}

// endedByHand restores the end of a ban that holds, or that lines which are judged again will begin.
func (e *Engine) endedByHand(b endedBan) {
	if now := e.Now(); b.End.After(now) { // the clock was set back
		b.End = now
	}
	held, ok, err := e.limiter.Bans().Get(b.Rule, b.Key...)
	if err != nil { // the rule is gone, or has another key
		return
	}
	if ok && slices.Equal(held.Key, b.Key) { // else it is that of a network around the key
		e.endAt(held, b.End)
	} else {
		_, _ = e.limiter.Bans().Remove(b.Rule, b.Key...) // its error is that of Get
	}
	e.banMu.Lock()
	defer e.banMu.Unlock()
	e.ended.add(b)
}

// ban restores a line of the ban journal, which is behind the records of the snapshot.
func (r *Restorer) ban(data []byte) error {
	if err := r.Wait(); err != nil {
		return err
	}
	var line banLine
	if err := json.Unmarshal(data, &line); err != nil {
		return fmt.Errorf("line of the ban journal: %w", err)
	}
	if r.e.Shared() {
		r.Unshared++
		return nil
	}
	l := r.e.limiter
	if ended := line.Unban; ended != nil {
		r.e.endedByHand(endedBan{ended.Rule, ended.Key, ended.Until})
		return nil
	}
	if line.Ban == nil {
		return errors.New("line of the ban journal has neither a ban nor the end of one")
	}
	b := *line.Ban
	if now := l.Now(); b.Since.After(now) { // the clock was set back: no ban lasts longer for it
		b.Since, b.Until = now, now.Add(b.Until.Sub(b.Since))
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	_, err = l.Bans().Import(bytes.NewReader(append(text, '\n')))
	if err != nil && !errors.Is(err, ratelimit.ErrBansFull) { // which is as it would be live
		r.e.log.Warn("a ban of the journal is left out", "rule", b.Rule, "key", keys.Text(b.Key), "error", err)
	}
	return nil
}

// Journal sets the journal to which later changes of bans are appended.
func (e *Engine) Journal(j *journal.Journal) {
	e.banMu.Lock()
	defer e.banMu.Unlock()
	e.journal = j
}
