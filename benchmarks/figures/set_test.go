package figures

import (
	"slices"
	"strings"
	"testing"
)

const raw = `goos: linux
cpu: A processor, 2.0 GHz
BenchmarkAdd/subject=mutex         	 1000	        10.0 ns/op	         0 B/op
BenchmarkAdd/subject=mutex-2       	 1000	        20.5 ns/op	         0 B/op
BenchmarkSum/slots=10/subject=256-shards-2 	 1000	  7 ns/op
PASS
BenchmarkAdd/subject=mutex         	 1000	        30 ns/op	         0 B/op
BenchmarkAdd/subject=noop         	 1000	        2 ns/op	         0 B/op
BenchmarkAdd/subject=mutex         	 1000	        11 ns/op	         0 B/op
BenchmarkUnfinished/subject=x
ok  	example.org/x	1.0s
`

func read(t *testing.T, text string) *Set {
	s := new(Set)
	if err := s.Read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRead(t *testing.T) {
	s := read(t, raw)
	if got := s.Config("cpu"); got != "A processor, 2.0 GHz" {
		t.Errorf("cpu is %q", got)
	}
	if got := s.Samples("Add", 1, "ns/op", "subject=mutex"); !slices.Equal(got, []float64{10, 30, 11}) {
		t.Errorf("samples on one core: %v", got)
	}
	if got, ok := s.Median("Add", 1, "ns/op", "subject=mutex"); got != 11 || !ok {
		t.Errorf("median %v, %v", got, ok)
	}
	if got, ok := s.Median("Add", 2, "ns/op", "subject=mutex"); got != 20.5 || !ok {
		t.Errorf("on two cores %v, %v", got, ok)
	}
	if got, ok := s.Median("Sum", 2, "ns/op", "subject=256-shards", "slots=10"); got != 7 || !ok {
		t.Errorf("keys in another order: %v, %v", got, ok)
	}
	if _, ok := s.Median("Add", 4, "ns/op", "subject=mutex"); ok {
		t.Error("there is a figure for four cores")
	}
	if got := s.Values("Add", "subject"); !slices.Equal(got, []string{"mutex", "noop"}) {
		t.Errorf("subjects %v", got)
	}
}

func TestRatioIsOfOnePass(t *testing.T) {
	// The second pass ran on a machine half as fast.
	if got, ok := Ratio([]float64{10, 20, 11}, []float64{5, 10, 5}); got != 2 || !ok {
		t.Errorf("ratio %v, %v; want 2", got, ok)
	}
	if _, ok := Ratio(nil, []float64{1}); ok {
		t.Error("there is a ratio of nothing")
	}
}

func TestReadErrorHasLine(t *testing.T) {
	err := new(Set).Read(strings.NewReader("BenchmarkX 1 fast ns/op\n"))
	if err == nil || !strings.Contains(err.Error(), "BenchmarkX 1 fast") {
		t.Errorf("error %v", err)
	}
}
