package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/internal/journal"
	"github.com/lately-go/lately/internal/snapshot"
	"github.com/lately-go/lately/ratelimit"
)

// The types of the records that Save writes. A record of counts belongs to the
// counter that was named last.
const (
	recordLimits  = 'l' // a chunk of ratelimit.Limiter.Export
	recordCounter = 'c' // a counterRecord
	recordCounts  = 't' // a chunk of lately.Table.Export
	recordHot     = 'h' // the name of a hot rule, a NUL byte, and a chunk of hotkey.Detector.Export
	recordHotKey  = 'k' // a hotRecord
	recordHistory = 'g' // a savedHistory
	recordCaller  = 'r' // a chunk of ratelimit.Throttle.Export: limits that callers brought
)

// A counterRecord names a counter, with what its counts depend on.
type counterRecord struct {
	Name   string          `json:"name"`
	Fields []string        `json:"fields"`
	Spans  []time.Duration `json:"spans"`
	Made   bool            `json:"made,omitempty"`
}

// Save writes down what e has counted, and its bans: records for Restorer, of this
// or another process. Decisions go on meanwhile. Of statistics, only the history of
// rates is among them.
func (e *Engine) Save(add func(typ byte, data []byte) error) error {
	now := e.now()
	if err := addAll(add, recordLimits, e.limiter.Load().Export(now)); err != nil {
		return err
	}
	if err := addAll(add, recordCaller, e.throttle.Export(now)); err != nil {
		return err
	}
	for _, h := range e.book.Load().hot {
		for chunk := range h.detector.Export(now) {
			if err := add(recordHot, append([]byte(h.Name+"\x00"), chunk...)); err != nil {
				return err
			}
		}
	}
	if err := e.saveHot(add, now); err != nil {
		return err
	}
	if err := e.saveHistory(add); err != nil {
		return err
	}
	for _, c := range e.book.Load().counters {
		data, err := json.Marshal(counterRecord{c.Name, c.Key.Fields(), c.Spans, c.dynamic})
		if err != nil {
			return err
		}
		if err := add(recordCounter, data); err != nil {
			return err
		}
		if err := addAll(add, recordCounts, c.table.ExportAt(now)); err != nil {
			return err
		}
	}
	return nil
}

func addAll(add func(typ byte, data []byte) error, typ byte, chunks iter.Seq[[]byte]) error {
	for chunk := range chunks {
		if err := add(typ, chunk); err != nil {
			return err
		}
	}
	return nil
}

// A Restorer brings records back that Save wrote, in their order, before the first
// decision. What belongs to a rule or counter that there is not any more is left
// out. What was counted with other rules is carried as a reload would. An engine
// into which something was brought back judges by its own clock.
type Restorer struct {
	e       *Engine
	counter *counter // that counts belong to; nil if there is none

	Limits lately.Imported
	Counts int // keys of counters
	Old    int // records of an earlier version, which are left out
	Other  int // records of counters that count otherwise now
}

// Restorer returns a Restorer for e.
func (e *Engine) Restorer() *Restorer { return &Restorer{e: e} }

// Record brings one record back.
func (r *Restorer) Record(typ byte, data []byte) error {
	if err := r.e.requireLive(); err != nil {
		return err
	}
	err := r.record(typ, data)
	if errors.Is(err, snapshot.ErrOldVersion) {
		r.Old++
		return nil
	}
	return err
}

func (r *Restorer) record(typ byte, data []byte) error {
	switch typ {
	case recordLimits:
		n, err := r.e.limiter.Load().Import(r.e.now(), data)
		r.Limits.Add(n)
		return err
	case recordCounter:
		return r.begin(data)
	case recordCounts:
		if r.counter == nil {
			r.Other++
			return nil
		}
		n, err := r.counter.table.ImportAt(r.e.now(), data)
		r.Counts += n.Keys
		return err
	case recordCaller:
		_, err := r.e.throttle.Import(r.e.now(), data)
		return err
	case recordHot:
		name, chunk, _ := bytes.Cut(data, []byte{0})
		for _, h := range r.e.book.Load().hot {
			if h.Name == string(name) {
				_, err := h.detector.Import(r.e.now(), chunk)
				return err
			}
		}
		return nil // of a rule that there is not any more
	case recordHotKey:
		return r.hotKey(data)
	case recordHistory:
		return r.history(data)
	}
	return fmt.Errorf("record of the unknown type %q", typ)
}

// begin finds the counter that a record names.
func (r *Restorer) begin(data []byte) (err error) {
	var was counterRecord
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("record of a counter: %w", err)
	}
	c := r.e.book.Load().counter(was.Name)
	if c == nil && was.Made {
		if c, err = r.e.make(was.Name); err != nil {
			return err
		}
	}
	r.counter = nil
	if c != nil && slices.Equal(c.Key.Fields(), was.Fields) {
		r.counter = c // windows that it has no more are left out
	}
	return nil
}

// Ban brings a line of the ban journal back.
func (r *Restorer) Ban(data []byte) error {
	if err := r.e.requireLive(); err != nil {
		return err
	}
	var line banLine
	if err := json.Unmarshal(data, &line); err != nil {
		return fmt.Errorf("line of the ban journal: %w", err)
	}
	l := r.e.limiter.Load()
	if ended := cmp.Or(line.Unban, line.Lift); ended != nil {
		if _, err := l.Set().Named(ended.Rule); err == nil {
			_, _ = l.Bans().Remove(ended.Rule, ended.Key...) // of a key that the rule has no more
		}
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
	_, err = l.Bans().Import(io.MultiReader(bytes.NewReader(text), bytes.NewReader([]byte{'\n'})))
	if err != nil && !errors.Is(err, ratelimit.ErrNoRoom) { // which is as it would be live
		r.e.log.Warn("a ban of the journal is left out", "rule", b.Rule, "key", keyText(b.Key), "error", err)
	}
	return nil
}

// Journal says where bans that change from now on are written down.
func (e *Engine) Journal(j *journal.Journal) {
	e.banMu.Lock()
	defer e.banMu.Unlock()
	e.journal = j
}
