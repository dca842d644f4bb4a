package ratelimit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A savedLayout is the JSON of a layout, without former, in the head of a chunk of counts.
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

// january is when the offset of a zone is saved.
var january = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// save returns l as a savedLayout. none is the hash of no value.
func (l *layout) save(resolution time.Duration, none uint64) []byte {
	s := savedLayout{Resolution: resolution, Algorithm: l.algorithm.String(), Limits: l.limits[:l.own()], Keep: l.keep[:l.own()], Most: l.most}
	if l.zone != nil {
		s.Zone, s.Offset = l.zone.String(), offset(january, l.zone)
	}
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

var errBadLayout = errors.New("its limits are none that a rule can have")

// savedLayoutOf returns the layout that was saved, and the resolution of times. Values
// that were hashed with another secret, which has another hash of none, are those of no
// field.
func savedLayoutOf(b []byte, none uint64) (layout, time.Duration, error) {
	var s savedLayout
	if json.Unmarshal(b, &s) != nil {
		return layout{}, 0, errBadLayout
	}
	algorithm, err := AlgorithmNamed(s.Algorithm)
	if err != nil || !s.valid(algorithm) {
		return layout{}, 0, errBadLayout
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
		s.Resolution < 0 || s.Resolution > MaxSpan || s.Offset < -26*3600 || s.Offset > 26*3600 {
		return false
	}
	for i, l := range s.Limits {
		if l.Validate(a) != nil || s.Keep[i] < l.N || s.Keep[i] > most {
			return false
		}
	}
	return s.Ban == nil || s.Ban.After <= MaxExact && s.Ban.Of <= Distinct && limit.ValidateSpan("span", s.Ban.Span) == nil
}
