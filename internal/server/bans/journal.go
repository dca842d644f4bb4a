package bans

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/ratelimit"
)

// A line is one record of the ban journal: a ban, or the end of one, whose Until is
// when it was ended.
type line struct {
	Ban   *ratelimit.BanRecord `json:"ban,omitempty"`
	Unban *ratelimit.BanRecord `json:"unban,omitempty"`
}

// write appends a line to the journal, if there is one.
//
// REQUIRES: l.mu.
func (l *List) write(line line) (journal.Pending, error) {
	if l.journal == nil {
		return journal.Pending{}, nil
	}
	b, _ := json.Marshal(line) // texts, numbers and times of this era have no errors
	return l.journal.Append(state.Ban, b)
}

// Began is called for each ban that a rule begins, and for those by hand at another server of the store. Nothing waits for its line, which is on
// disk within a second.
func (l *List) Began(r ratelimit.BanRecord) {
	if !l.record(&r) || !l.lines.Allow(slog.LevelInfo, banStarted) {
		return
	}
	l.log.Info(banStarted, "rule", r.Rule, "key", keys.Text(r.Key), "until", r.Until.UTC(), "count", r.Count, "reason", r.Reason)
}

// The messages of the log about bans that the caller does not log.
const (
	banStarted = "ban started"
	banEnded   = "ban ended"
)

// EndedElsewhere is called for each ban that was ended by hand at another server of the store.
func (l *List) EndedElsewhere(rule string, key []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again, _ := l.bans().Get(rule, key...); !again {
		l.config.Publish(api.Event{Type: api.BanEnded, Time: l.limiter.Now(), Rule: rule, Key: api.KeyOf(key...)})
	}
}

// record appends a ban that a rule has begun to the journal, and publishes it. It replaces r
// with the ban in force. It returns false if the ban was ended by hand meanwhile, or after the event that began it: no record may
// follow that of its end. The ban of a rule that a reload has removed is appended as it was, like the
// lines before the reload: after a restart with the rule, it holds.
func (l *List) record(r *ratelimit.BanRecord) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endAgain(r) {
		return false
	}
	held, ok, err := l.bans().Get(r.Rule, r.Key...)
	if _, removed := errors.AsType[*ratelimit.RuleError](err); !ok && !removed {
		return false
	}
	if ok {
		*r = held
	}
	if _, err := l.write(line{Ban: r}); err != nil && !errors.Is(err, journal.ErrFull) { // which the journal counts
		l.log.Error("a ban was not written to the journal", "rule", r.Rule, "error", err)
	}
	l.config.Publish(event(r))
	return true
}

// endAgain ends a ban that a rule has begun if it was ended by hand before a crash, as the line that began it was judged
// again. It reports whether that is so.
//
// REQUIRES: l.mu.
func (l *List) endAgain(r *ratelimit.BanRecord) bool {
	end, ok := l.ended.take(r)
	if ok {
		l.endAt(*r, end)
	}
	return ok
}

// endAt ends a ban at a time in the past: events up to then are refused as they were, and it is no earlier ban
// of the next one.
func (l *List) endAt(r ratelimit.BanRecord, end time.Time) {
	_, _ = l.bans().Remove(r.Rule, r.Key...) // there is none if the rule is gone
	r.Until, r.Count = end, 0
	_ = l.limiter.BansAt(r.Since).Add(r) // nothing to refuse if it began at its end
}

// Journal sets the journal to which later changes of bans are appended.
func (l *List) Journal(j *journal.Journal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal = j
}

// Save adds records of the bans that were ended by hand. The limiter exports the bans that hold.
func (l *List) Save(w *state.Writer) {
	l.mu.Lock()
	ended := slices.Collect(l.ended.left())
	l.mu.Unlock()
	for _, b := range ended {
		w.JSON(state.Ended, b)
	}
}

// RestoreEnded restores a record that Save has added.
func (l *List) RestoreEnded(data []byte) error {
	var b endedBan
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("record of the end of a ban: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.add(b)
	return nil
}

// RestoreLine restores a line of the ban journal, when the snapshot before it was restored.
func (l *List) RestoreLine(data []byte) error {
	var line line
	if err := json.Unmarshal(data, &line); err != nil {
		return fmt.Errorf("line of the ban journal: %w", err)
	}
	switch {
	case line.Unban != nil:
		l.restoreEnd(endedBan{line.Unban.Rule, line.Unban.Key, line.Unban.Until})
		return nil
	case line.Ban != nil:
		return l.restore(*line.Ban)
	}
	return errors.New("line of the ban journal has neither a ban nor the end of one")
}

// restoreEnd restores the end of a ban that holds, or that lines which are judged again will begin.
func (l *List) restoreEnd(b endedBan) {
	if now := l.limiter.Now(); b.End.After(now) { // the clock was set back
		b.End = now
	}
	held, ok, err := l.bans().Get(b.Rule, b.Key...)
	if err != nil { // the rule is gone, or has another key
		return
	}
	if ok && slices.Equal(held.Key, b.Key) { // else a network around the key is banned
		l.endAt(held, b.End)
	} else {
		_, _ = l.bans().Remove(b.Rule, b.Key...) // Get returned the same error
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.add(b)
}

// restore restores a ban.
func (l *List) restore(b ratelimit.BanRecord) error {
	if now := l.limiter.Now(); b.Since.After(now) { // the clock was set back: no ban lasts longer for it
		b.Since, b.Until = now, now.Add(b.Until.Sub(b.Since))
	}
	err := l.limiter.Internal().RestoreBan(b)
	if err != nil && !errors.Is(err, ratelimit.ErrBansFull) { // which is as it would be live
		l.log.Warn("a ban of the journal is left out", "rule", b.Rule, "key", keys.Text(b.Key), "error", err)
	}
	return nil
}

// maxEndedBans is how many ended bans are kept, the newest ones.
const maxEndedBans = 1 << 16

// endedBans is the bans that were ended by hand according to the ban journal. The lines of a log since the snapshot are
// judged again after a crash: those that began such a ban must not begin it again. It is not safe for concurrent
// use.
type endedBans struct {
	ends map[string][]time.Time // by keyOf, in the order of add
	all  []endedBan             // in the order of add; some of them are in ends no more
}

// An endedBan is the end of a ban by hand.
type endedBan struct {
	Rule string    `json:"rule"`
	Key  []string  `json:"key"`
	End  time.Time `json:"end"`
}

// keyOf returns what identifies the key of a rule.
func keyOf(rule string, key []string) string {
	text := rule
	for _, value := range key {
		text += "\x00" + strconv.Itoa(len(value)) + "\x00" + value
	}
	return text
}

// add notes that a ban was ended.
func (b *endedBans) add(ended endedBan) {
	if b.ends == nil {
		b.ends = make(map[string][]time.Time)
	}
	key := keyOf(ended.Rule, ended.Key)
	b.ends[key] = append(b.ends[key], ended.End)
	if b.all = append(b.all, ended); len(b.all) > maxEndedBans {
		b.remove(keyOf(b.all[0].Rule, b.all[0].Key), b.all[0].End)
		b.all = b.all[1:]
	}
}

// take returns when a ban that a rule has begun was ended by hand, if it was, and removes that: the line that began the ban
// was judged again.
func (b *endedBans) take(r *ratelimit.BanRecord) (end time.Time, ok bool) {
	if len(b.ends) == 0 {
		return end, false
	}
	key := keyOf(r.Rule, r.Key)
	for _, end := range b.ends[key] {
		if !r.Since.After(end) {
			b.remove(key, end)
			return end, true
		}
	}
	return end, false
}

func (b *endedBans) remove(key string, end time.Time) {
	ends := b.ends[key]
	if i := slices.IndexFunc(ends, end.Equal); i >= 0 {
		ends = slices.Delete(ends, i, i+1)
	}
	if b.ends[key] = ends; len(ends) == 0 {
		delete(b.ends, key)
	}
}

// left returns those that were not taken.
func (b *endedBans) left() iter.Seq[endedBan] {
	return func(yield func(endedBan) bool) {
		for _, ended := range b.all {
			if slices.ContainsFunc(b.ends[keyOf(ended.Rule, ended.Key)], ended.End.Equal) && !yield(ended) {
				return
			}
		}
	}
}
