package follow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lately-go/lately/api"
)

// A Point is a place between two lines of the logs, or of one of several logs: the events before it
// were passed on, and none after. It is valid until the function returns that it is passed to.
type Point struct {
	// More reports whether there may be more lines to read at once.
	More bool

	now time.Time // of the poll, if there are none
	f   *Follower
}

// passed calls Config.Passed.
func (f *Follower) passed(more bool, now time.Time) {
	if f.config.Passed != nil && f.failed == nil {
		f.failed = f.config.Passed(Point{more, now, f})
	}
}

// Until returns the time up to which the events before p are to be judged, in the order of time; those
// after it wait for lines that are not read yet. It is the zero time if Config.Lateness is 0:
// events do not wait then.
func (p Point) Until() time.Time {
	switch {
	case p.f.config.Lateness == 0:
		return time.Time{}
	case p.More:
		return time.Unix(0, p.f.ordered()).UTC()
	}
	return p.f.until(p.now).UTC()
}

// State returns a record for [Follower.Resume]: a Follower that resumes from it goes on here.
func (p Point) State() ([]byte, error) {
	var state savedState
	for s := range p.f.sources() {
		state.Logs = append(state.Logs, s.saved())
	}
	record, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	return record, nil
}

// Logs returns what Stats does.
func (p Point) Logs() []api.FollowedLog { return p.f.logs() }
