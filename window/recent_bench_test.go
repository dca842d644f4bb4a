package window

import (
	"testing"
	"time"
)

// The floor of a Recent is a mutex, in sums_bench_test.go, and a monotonic
// reading, in counter_bench_test.go:
//
//	go test -run '^$' -bench 'Floor|Recent' -cpu 1,2

type trade struct {
	price int64
	_     [3]int64 // amount, buyer, seller
}

func BenchmarkRecentAdd(b *testing.B) {
	r := mustRecent[trade](b, RecentConfig{Span: 5 * time.Minute})
	inParallel(b, func() { r.Add(trade{price: 1}) })
}

func BenchmarkRecentAddAt(b *testing.B) {
	r := mustRecent[trade](b, RecentConfig{Span: 5 * time.Minute})
	t := time.Unix(1e9, 0)
	for b.Loop() {
		t = t.Add(time.Second) // one in, one out
		r.AddAt(t, trade{price: 1})
	}
}

// Every event older than the 100 newest.
func BenchmarkRecentAddAtLate(b *testing.B) {
	r := mustRecent[trade](b, RecentConfig{Span: 5 * time.Minute})
	t := time.Unix(1e9, 0)
	for b.Loop() {
		t = t.Add(time.Second)
		r.AddAt(t, trade{price: 1})
		r.AddAt(t.Add(-100*time.Second), trade{price: 1})
	}
}

func BenchmarkRecentAppend1000(b *testing.B) {
	r := mustRecent[trade](b, RecentConfig{Span: 5 * time.Minute, Max: 1000})
	for range 1000 {
		r.Add(trade{})
	}
	var dst []Event[trade]
	for b.Loop() {
		dst = r.Append(dst[:0])
	}
}
