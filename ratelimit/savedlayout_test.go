package ratelimit

import (
	"testing"
	"time"

	"github.com/lately-go/lately/match"
)

// TestSavedLayout fixes the head of a chunk of counts, so that snapshots of earlier
// builds are read.
func TestSavedLayout(t *testing.T) {
	l := newLayout(&Rule{
		Key: match.MustKey("client"), Algorithm: TwoBucket, Limits: []Limit{{N: 5, Span: time.Minute}},
		Ban: &Ban{After: 7, Of: Refusals, Span: time.Hour},
	}, nil)
	const want = `{"Resolution":1000000000,"Algorithm":"two-bucket","Limits":[{"N":5,"Span":60000000000,"Burst":0,"Per":0}],"Keep":[5],"Most":0,"Zone":"","Offset":0,"Ban":{"After":7,"Of":1,"Span":3600000000000}}`
	if got := string(l.save(time.Second, 1)); got != want {
		t.Errorf("saved as\n%s, want\n%s", got, want)
	}
	if back, resolution, err := savedLayoutOf([]byte(want), 1); err != nil || !back.equal(&l) || resolution != time.Second {
		t.Errorf("read as %+v at %v, %v; want %+v", back, resolution, err, l)
	}
}
