package ratelimit

import (
	"slices"
	"time"

	"github.com/lately-go/lately/internal/meter"
)

// A layout is what a rule's records depend on: rules with equal layouts can use
// the same records.
type layout struct {
	algorithm Algorithm
	zone      *time.Location
	limits    []Limit
	most      uint64 // the largest N that an Adapt can bring; 0 without one
	bans      bool
	after     uint64
	of        Cause
	span      time.Duration
}

func newLayout(r *Rule) layout {
	l := layout{algorithm: r.Algorithm, zone: r.Zone, limits: r.Limits}
	if r.Adapt != nil {
		l.most = r.Adapt.most()
	}
	if r.Ban != nil {
		l.bans, l.after, l.of, l.span = true, r.Ban.After, r.Ban.Of, r.Ban.Span
	}
	return l
}

func (l layout) equal(o layout) bool {
	return l.algorithm == o.algorithm && l.zone == o.zone && l.most == o.most && slices.Equal(l.limits, o.limits) &&
		l.bans == o.bans && l.after == o.after && l.of == o.of && l.span == o.span
}

// meters returns the meters of a record, limits first, then the ban's.
func (l layout) meters(resolution time.Duration) ([]meter.Meter, error) {
	var ms []meter.Meter
	for _, limit := range l.limits {
		c := meter.Config{
			Kind: meter.Kind(l.algorithm), N: max(limit.N, l.most), Span: limit.Span, Burst: limit.Burst,
			Resolution: resolution,
		}
		if l.algorithm == Calendar {
			c.Span, c.Period, c.Zone = 0, meter.Period(limit.period()), l.zone
		}
		m, err := meter.New(c)
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	if l.bans {
		m, err := meter.New(meter.Config{Kind: meter.Exact, N: l.after, Span: l.span, Resolution: resolution})
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, nil
}
