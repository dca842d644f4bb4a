package lately

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// trafficSteps is the table of the article that it comes from.
func trafficSteps(t testing.TB, hysteresis float64) *Steps {
	t.Helper()
	s, err := NewSteps(StepsConfig{Steps: []Step{{1000, 2000}, {5000, 1000}}, Above: 500, Hysteresis: hysteresis})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewStepsErrors(t *testing.T) {
	for _, c := range []struct {
		config StepsConfig
		want   string
	}{
		{StepsConfig{}, "no rows"},
		{StepsConfig{Steps: []Step{{0, 1}}}, "row 0 is below 0"},
		{StepsConfig{Steps: []Step{{-5, 1}}}, "row 0 is below -5"},
		{StepsConfig{Steps: []Step{{5, 1}, {5, 2}}}, "row 1 is below 5, must be a finite number greater than 5"},
		{StepsConfig{Steps: []Step{{math.NaN(), 1}}}, "row 0 is below NaN"},
		{StepsConfig{Steps: []Step{{math.Inf(1), 1}}}, "row 0 is below +Inf"},
		{StepsConfig{Steps: []Step{{5, 1}}, Hysteresis: 1}, "hysteresis 1: must be less than 1"},
		{StepsConfig{Steps: []Step{{5, 1}}, Hysteresis: math.NaN()}, "hysteresis NaN"},
	} {
		if s, err := NewSteps(c.config); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewSteps(%+v): error %v, want %q in it", c.config, err, c.want)
		}
	}
}

func TestStepsTable(t *testing.T) {
	for _, c := range []struct {
		average float64
		limit   uint64
	}{{0, 2000}, {999.9, 2000}, {1000, 1000}, {4999.9, 1000}, {5000, 500}, {math.Inf(1), 500}, {-1, 2000}} {
		for _, hysteresis := range []float64{0, -1, 0.5} {
			if got := trafficSteps(t, hysteresis).Follow(c.average); got != c.limit {
				t.Errorf("first average %v: limit %d, want %d", c.average, got, c.limit)
			}
		}
		// Without hysteresis there is no memory.
		s := trafficSteps(t, -1)
		s.Follow(1e9)
		if got := s.Follow(c.average); got != c.limit {
			t.Errorf("average %v after 1e9: limit %d, want %d", c.average, got, c.limit)
		}
	}
	s := trafficSteps(t, 0)
	if s.Limit() != 2000 || s.Follow(math.NaN()) != 2000 {
		t.Errorf("limit %d before any average", s.Limit())
	}
}

func TestStepsHysteresis(t *testing.T) {
	s := trafficSteps(t, 0)
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
		if got := s.Follow(c.average); got != c.limit || s.Limit() != c.limit || s.Changes() != c.changes {
			t.Errorf("average %v: limit %d, %d changes; want %d, %d", c.average, got, s.Changes(), c.limit, c.changes)
		}
	}
}

// An average that goes to and fro around a threshold changes the limit once;
// without hysteresis, which is the control, it changes it all the time.
func TestStepsDoesNotFlap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 0))
	s, control := trafficSteps(t, 0), trafficSteps(t, -1)
	for range 10_000 {
		average := 5000 + 990*(rnd.Float64()-0.5)
		s.Follow(average)
		control.Follow(average)
	}
	if s.Changes() > 2 { // from the first row to the second, and then to the third
		t.Errorf("the limit changed %d times", s.Changes())
	}
	if control.Changes() < 1000 {
		t.Errorf("the control changed %d times: the test proves nothing", control.Changes())
	}
}

// After every average the row is one that holds for it, coming from below or
// from above, and it moved no further than it had to.
func TestStepsModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 0))
	for range 2000 {
		config := StepsConfig{Above: 999, Hysteresis: rnd.Float64()}
		below := 0.0
		for i := range 1 + rnd.IntN(5) {
			below += 1 + rnd.Float64()*100
			config.Steps = append(config.Steps, Step{below, uint64(i)})
		}
		s, err := NewSteps(config)
		if err != nil {
			t.Fatal(err)
		}
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
			if got := s.Follow(average); got != want {
				t.Fatalf("%+v: average %v: limit %d, want %d", config, average, got, want)
			}
		}
	}
}

func TestStepsConcurrent(t *testing.T) {
	s := trafficSteps(t, 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				if got := s.Follow(6000); got != 500 {
					t.Errorf("limit %d, want 500", got)
					return
				}
			}
		})
	}
	wg.Wait()
	if s.Limit() != 500 || s.Changes() != 1 {
		t.Errorf("limit %d, %d changes", s.Limit(), s.Changes())
	}
	if n := testing.AllocsPerRun(100, func() { s.Follow(10); s.Follow(1e6) }); n != 0 {
		t.Errorf("Follow allocates %v times", n)
	}
}

func BenchmarkStepsFollow(b *testing.B) {
	s := trafficSteps(b, 0)
	inParallel(b, func() { s.Follow(3000) })
}
