package ratelimit

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/internal/test/randtest"
)

// A stepTable is the table of an Adapt, and its row.
type stepTable struct {
	Adapt
	row int
}

func (s *stepTable) follow(average float64) uint64 {
	s.row = s.Adapt.row(s.row, average)
	return s.limit(s.row)
}

// trafficSteps is the table of the article that it comes from.
func trafficSteps(t testing.TB, hysteresis float64) *stepTable {
	t.Helper()
	s := &stepTable{Adapt: Adapt{Steps: []AdaptStep{{1000, 2000}, {5000, 1000}}, Above: 500, Hysteresis: hysteresis}}
	if wrong := adaptErrors(&s.Adapt); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return s
}

// adaptErrors returns the errors in the decisions of a under a rule with a sliding limit.
func adaptErrors(a *Adapt) (wrong invalid.Fields) {
	a.validate(&Rule{Limits: []Limit{{N: 1, Span: time.Second}}}, &wrong)
	return wrong
}

func TestStepTableErrors(t *testing.T) {
	for _, c := range []struct {
		config Adapt
		want   string
	}{
		{Adapt{}, "adapt.steps: missing"},
		{Adapt{Steps: []AdaptStep{{0, 1}}}, "adapt.steps[0]: 1 below 0: must be more traffic"},
		{Adapt{Steps: []AdaptStep{{-5, 1}}}, "steps[0]: 1 below -5"},
		{Adapt{Steps: []AdaptStep{{5, 1}, {5, 2}}}, "steps[1]: 2 below 5: must be more traffic than in the step before"},
		{Adapt{Steps: []AdaptStep{{math.NaN(), 1}}}, "steps[0]: 1 below NaN"},
		{Adapt{Steps: []AdaptStep{{math.Inf(1), 1}}}, "steps[0]: 1 below +Inf"},
		{Adapt{Steps: []AdaptStep{{5, 1}}, Hysteresis: 1}, "hysteresis: 1: must be a share of less than 1"},
		{Adapt{Steps: []AdaptStep{{5, 1}}, Hysteresis: math.NaN()}, "hysteresis: NaN"},
	} {
		if wrong := adaptErrors(&c.config); len(wrong) != 1 || !strings.Contains(wrong.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", c.config, wrong, c.want)
		}
	}
}

func TestStepsTable(t *testing.T) {
	for _, c := range []struct {
		average float64
		limit   uint64
	}{{0, 2000}, {999.9, 2000}, {1000, 1000}, {4999.9, 1000}, {5000, 500}, {math.Inf(1), 500}, {-1, 2000}} {
		for _, hysteresis := range []float64{0, -1, 0.5} {
			if got := trafficSteps(t, hysteresis).follow(c.average); got != c.limit {
				t.Errorf("first average %v: limit %d, want %d", c.average, got, c.limit)
			}
		}
		// Without hysteresis the average alone decides.
		s := trafficSteps(t, -1)
		s.follow(1e9)
		if got := s.follow(c.average); got != c.limit {
			t.Errorf("average %v after 1e9: limit %d, want %d", c.average, got, c.limit)
		}
	}
	s := trafficSteps(t, 0)
	if s.limit(s.row) != 2000 || s.follow(math.NaN()) != 2000 {
		t.Errorf("limit %d before any average", s.limit(s.row))
	}
}

func TestStepsHysteresis(t *testing.T) {
	s := trafficSteps(t, 0)
	changes := uint64(0)
	for _, c := range []struct {
		average float64
		limit   uint64
		changes uint64
	}{
		{500, 2000, 0},
		{999, 2000, 0},
		{1000, 1000, 1},
		{999, 1000, 1},
		{900, 1000, 1},
		{math.NaN(), 1000, 1},
		{899.9, 2000, 2},
		{999, 2000, 2},
		{7000, 500, 3},
		{4500, 500, 3},
		{4499, 1000, 4},
		{4999, 1000, 4},
		{6000, 500, 5},
		{950, 1000, 6},
		{6000, 500, 7},
		{0, 2000, 8},
	} {
		row := s.row
		got := s.follow(c.average)
		if s.row != row {
			changes++
		}
		if got != c.limit || s.limit(s.row) != c.limit || changes != c.changes {
			t.Errorf("average %v: limit %d, %d changes; want %d, %d", c.average, got, changes, c.limit, c.changes)
		}
	}
}

// After every average the row is one that holds for it, coming from below or
// from above, and it moved no further than it had to.
func TestStepsModel(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		config := Adapt{Above: 999, Hysteresis: rnd.Float64()}
		below := 0.0
		for i := range 1 + rnd.IntN(5) {
			below += 1 + rnd.Float64()*100
			config.Steps = append(config.Steps, AdaptStep{below, uint64(i)})
		}
		s := &stepTable{Adapt: config}
		row := 0
		for range 100 {
			average := rnd.Float64() * below * 1.5
			// Up one row at a time while the threshold is reached, down one at
			// a time while the average is far enough under it.
			for row < len(config.Steps) && average >= config.Steps[row].Below {
				row++
			}
			for row > 0 && average < config.Steps[row-1].Below*(1-config.Hysteresis) {
				row--
			}
			want := config.Above
			if row < len(config.Steps) {
				want = config.Steps[row].Limit
			}
			if got := s.follow(average); got != want {
				t.Fatalf("%+v: average %v: limit %d, want %d", config, average, got, want)
			}
		}
	}
}

func TestStepsNoAllocations(t *testing.T) {
	s := trafficSteps(t, 0)
	if n := testing.AllocsPerRun(100, func() { s.follow(10); s.follow(1e6) }); n != 0 {
		t.Errorf("follow allocates %v times", n)
	}
}
