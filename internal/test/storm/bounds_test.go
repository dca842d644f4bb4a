//go:build linux

package storm

import (
	"fmt"
	"testing"
	"time"
)

// TestOver compares the bound for limits in force one after the other with docs/dev/proofs.md.
func TestOver(t *testing.T) {
	exact := func(n uint64) Version { return Version{Algorithm: "exact", N: n, Burst: 1, Span: time.Minute} }
	bucket := Version{Algorithm: "gcra", N: 20, Burst: 5, Span: time.Minute}
	for _, x := range []struct {
		versions []Version
		want     uint64
	}{
		{[]Version{exact(10)}, 10},
		{[]Version{exact(10), exact(30), exact(5)}, 30},
		{[]Version{bucket}, 24},
		{[]Version{exact(10), bucket}, 24},
		{[]Version{bucket, exact(10)}, 24 + 10},
		{[]Version{bucket, exact(5), exact(30), exact(6)}, 24 + 30},
		{[]Version{bucket, exact(5), bucket, exact(30)}, 24 + 24 + 30},
		{[]Version{exact(10), {Algorithm: "fixed", N: 8, Burst: 1, Span: time.Minute}, exact(3)}, 10 + 8 + 3},
	} {
		l := Limit{Versions: x.versions}
		order := make([]int, len(x.versions))
		for i := range order {
			order[i] = i
		}
		if got, _ := l.over(order, 1); got != x.want {
			t.Errorf("%s: at most %d, want %d", fmt.Sprint(x.versions), got, x.want)
		}
	}
}
