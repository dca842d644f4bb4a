package demo

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// stepsPerSecond is how often events are made.
const stepsPerSecond = 20

// A request is what a proxy would say about one.
type request struct{ client, method, target string }

// traffic makes requests, some in each step: always the same ones for a seed.
type traffic struct {
	random *rand.Rand
	steps  int
	made   []request // of this step
}

// Visits of clients that exceed a rule begin at once, and again after a period. Each lasts
// for a while and, except for the crowd, comes from another address.
const (
	crawlEvery, crawlFor = 50 * stepsPerSecond, 30 * stepsPerSecond
	guessEvery, guessFor = 35 * stepsPerSecond, 20 * stepsPerSecond
	crowdEvery, crowdFor = 70 * stepsPerSecond, 25 * stepsPerSecond
)

const (
	people   = 240
	crowd    = 2000
	products = 400
)

func newTraffic(seed uint64) *traffic {
	return &traffic{random: rand.New(rand.NewPCG(seed, seed))}
}

// step returns the requests of the next step. They are valid until the next call.
func (t *traffic) step() []request {
	t.made = t.made[:0]
	// 30 to 70 a second, in waves of 40 seconds.
	wave := 50 + 20*math.Sin(2*math.Pi*float64(t.steps)/(40*stepsPerSecond))
	for range t.about(wave / stepsPerSecond) {
		t.person()
	}
	if n := t.steps % crawlEvery; n < crawlFor {
		t.add(fmt.Sprintf("198.51.100.%d", 10+t.steps/crawlEvery%200), "GET", t.crawled(n))
	}
	if n := t.steps % guessEvery; n < guessFor && n%2 == 0 {
		t.add(fmt.Sprintf("203.0.113.%d", 20+t.steps/guessEvery%200), "POST", "/login")
	}
	looks := 35.0 // a second: enough to be hot at all times
	if t.steps%crowdEvery < crowdFor {
		looks = 60
	}
	for range t.about(looks / stepsPerSecond) {
		t.add(fmt.Sprintf("2001:db8:%x::1", 1+t.random.IntN(crowd)), "GET", "/product/2718")
	}
	t.steps++
	return t.made
}

func (t *traffic) add(client, method, target string) {
	t.made = append(t.made, request{client, method, target})
}

// about returns a whole number whose mean is n.
func (t *traffic) about(n float64) int { return int(n + t.random.Float64()) }

// person adds a request of a person.
func (t *traffic) person() {
	client := fmt.Sprintf("192.0.2.%d", 1+t.random.IntN(people))
	switch n := t.random.IntN(100); {
	case n < 25:
		t.add(client, "GET", "/")
	case n < 70:
		t.add(client, "GET", t.product())
	case n < 85:
		t.add(client, "GET", fmt.Sprintf("/search?q=%d", t.random.IntN(1000)))
	case n < 97:
		t.add(client, "GET", "/cart")
	case n < 98:
		t.add(client, "POST", "/login")
	default:
		t.add(client, "POST", "/cart")
	}
}

// product returns the path of a product. Few products have most of the requests.
func (t *traffic) product() string {
	x := t.random.Float64()
	return fmt.Sprintf("/product/%d", 1000+int(products*x*x*x))
}

// crawled returns what the crawler requests in step n of its visit.
func (t *traffic) crawled(n int) string {
	if n%4 == 0 {
		return fmt.Sprintf("/search?q=%d", n)
	}
	return fmt.Sprintf("/product/%d", 1000+n%products)
}
