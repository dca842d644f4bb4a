package follow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lately-go/lately/accesslog"
)

// savedState is what Save has saved.
type savedState struct {
	Logs []savedLog  `json:"logs"`
	Held []heldEvent `json:"held,omitempty"`
	Lost time.Time   `json:"lost,omitzero"` // as of Lost
}

type savedLog struct {
	Path    string        `json:"path"`
	Format  string        `json:"format,omitempty"`
	Newest  int64         `json:"newest"`
	Counted time.Time     `json:"counted,omitzero"` // as in logReader
	Past    []place       `json:"past,omitempty"`
	Open    []place       `json:"open,omitempty"` // the last is the newest
	Journal *journalPlace `json:"journal,omitempty"`
}

func (t *tail) saved() savedLog {
	l := savedLog{Path: t.path, Format: t.format.String(), Newest: t.newest, Counted: t.counted, Past: t.past}
	t.identify(t.latest)
	for _, g := range t.gens {
		if g != t.latest {
			l.Open = append(l.Open, g.saved())
		}
	}
	if t.latest != nil {
		l.Open = append(l.Open, t.latest.saved())
	}
	return l
}

// recordSize is how many bytes of values the events of a record have, about.
const recordSize = 128 << 10

// Save calls save with the state of f, as records of less than 1 MiB, while no event is
// judged: whatever save keeps together with them has counted the lines up to there, and none
// after.
func (f *Follower) Save(save func(records [][]byte) error) error {
	f.mu.Lock()
	defer f.unlock()
	parts := []savedState{{Lost: f.lost}}
	for s := range f.sources() {
		parts = append(parts, savedState{Logs: []savedLog{s.saved()}})
	}
	for held := range f.queue.parts() {
		parts = append(parts, savedState{Held: held})
	}
	records, err := asRecords(parts)
	if err != nil {
		return err
	}
	return save(records)
}

// asRecords returns each of parts as JSON.
func asRecords[T any](parts []T) ([][]byte, error) {
	records := make([][]byte, len(parts))
	for i := range parts {
		var err error
		if records[i], err = json.Marshal(parts[i]); err != nil {
			return nil, fmt.Errorf("follow: %w", err)
		}
	}
	return records, nil
}

// Resume makes f go on where the Follower was that saved the record. Call it with each
// record, before Run. Logs that f does not follow any more are left out; new ones begin at their
// beginning.
func (f *Follower) Resume(record []byte) error {
	f.mu.Lock()
	defer f.unlock()
	var state savedState
	if err := json.Unmarshal(record, &state); err != nil {
		return fmt.Errorf("follow: saved state: %w", err)
	}
	f.queue.restore(state.Held)
	if !state.Lost.IsZero() {
		f.lose(state.Lost)
	}
	for _, l := range state.Logs {
		if s := f.resumed(&l); s != nil {
			s.resume(&l)
		}
	}
	return nil
}

// Lost marks records of Save as lost. Call it after Resume of the others and before Open. Events before until are not passed on for
// logs without a place: the state that is kept together with the records may include them.
func (f *Follower) Lost(until time.Time) {
	f.mu.Lock()
	defer f.unlock()
	for _, path := range f.lose(until) {
		f.log.Warn("the position in the log is lost: its lines from before then are skipped, since they may be counted", "file", path, "then", until)
	}
}

// lose is Lost, and returns the logs whose place is not known. A stream but the journal gives no line twice.
func (f *Follower) lose(until time.Time) (unknown []string) {
	f.lost = until
	for s := range f.sources() {
		switch s.(type) {
		case *tail, *journal:
			if r := s.reader(); !s.begun() {
				r.counted = until
				unknown = append(unknown, r.path)
			}
		}
	}
	return unknown
}

// resumed returns the log that l is about, or nil if it is not followed any more.
func (f *Follower) resumed(l *savedLog) source {
	if s := f.source(l.Path); s != nil {
		return s
	}
	for i := range f.config.Logs {
		if c := &f.config.Logs[i]; c.many() && c.covers(l.Path) {
			return f.tail(l.Path, c)
		}
	}
	return nil
}

func (t *tail) resume(l *savedLog) {
	if f, err := accesslog.ParseFormat(l.Format); err == nil && t.format.String() == "" {
		t.format, t.known = f, true
	}
	t.newest, t.counted = l.Newest, l.Counted
	t.past = l.Past
	for _, p := range l.Open {
		t.remember(p) // all of them: these files are opened below, wherever they are now
	}
	if len(l.Open) == 0 {
		return
	}
	older, last := l.Open[:len(l.Open)-1], l.Open[len(l.Open)-1]
	t.latest = &generation{place: last} // refresh finds what became of it
	current, err := openGeneration(t.path, time.Now())
	if err == nil {
		defer current.file.Close()
	}
	for _, p := range older {
		t.settled(&p, func(files []rotated) {
			if i := find(&p, files); i >= 0 {
				t.add(files[i], current, true, time.Now())
			}
		})
	}
}
