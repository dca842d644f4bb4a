package accesslogtest

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	cellMillis = 60_000 // the log is made minute by minute
	minLines   = 1_000  // below this, or below a minute, nothing is planted
)

// hourWeight is the traffic of each hour of the day, relative: a quiet night,
// a busy noon and a busier evening.
var hourWeight = [24]int64{
	22, 14, 10, 8, 8, 12, 22, 40, 62, 78, 86, 92,
	98, 94, 84, 78, 76, 80, 90, 104, 110, 98, 70, 42,
}

// A plan is how many lines of each kind fall into each cell.
type plan struct {
	millis   int64    // length of the log
	ordinary int64    // lines of sessions
	weights  []int64  // of all cells
	weight   int64    // sum of these
	passed   int64    // sum of the weights of the cells filled so far
	clients  []string // of the crowd

	crawler, flood, crowd, hot, dirty planted
}

// planted is lines at known times. Next is the number of those written.
type planted struct {
	begin, millis int64
	lines, next   int64
	fading        bool
}

func newPlan(c Config) *plan {
	p := &plan{millis: c.Duration.Milliseconds(), clients: crowdClients()}
	n := int64(c.Lines)
	if c.Lines >= minLines && c.Duration >= time.Minute {
		p.crawler = planted{lines: n * 4 / 100, millis: p.millis}
		p.plantBursts(n)
		p.plantDirty(n)
	}
	p.ordinary = n - p.crawler.lines - p.flood.lines - p.crowd.lines - p.hot.lines - p.dirty.lines
	noise := rand.New(rand.NewPCG(c.Seed, streamWeights))
	for begin := int64(0); begin < p.millis; begin += cellMillis {
		weight := p.cellWeight(begin, noise.Int64N(32))
		p.weights = append(p.weights, weight)
		p.weight += weight
	}
	return p
}

// plantBursts places the three bursts, on whole seconds: the crowd in the
// morning, the flood after noon, the hot product in the evening of a log that
// is one day long.
func (p *plan) plantBursts(lines int64) {
	burst := func(percentOfTime, most, part, percentOfLines int64) planted {
		return planted{
			begin:  p.millis * percentOfTime / 100 / 1000 * 1000,
			millis: min(most, p.millis/part/1000) * 1000,
			lines:  lines * percentOfLines / 100,
		}
	}
	p.crowd = burst(37, 600, 12, 4)
	p.flood = burst(58, 300, 20, 6)
	p.hot = burst(83, 600, 12, 5)
	p.hot.fading = true
}

// plantDirty places three dirty lines for every 50,000, away from the ends.
func (p *plan) plantDirty(lines int64) {
	n := 3 * (1 + lines/50_000)
	p.dirty = planted{begin: p.millis / (2 * n), lines: n, millis: p.millis}
}

// cellWeight returns the weight of the cell at begin: the curve of the day
// between its two hours, and noise from 0 to 31, which is up to a third.
func (p *plan) cellWeight(begin, noise int64) int64 {
	const hour = 3_600_000
	at := begin % (24 * hour)
	h, into := at/hour, at%hour/1000
	curve := hourWeight[h]*(3600-into) + hourWeight[(h+1)%24]*into
	length := min(cellMillis, p.millis-begin)
	return curve / 36 * (64 + noise) * length / cellMillis
}

// fill adds the lines of a cell to b, in no order.
func (p *plan) fill(b *batch, s *shop, cell int, rng *rand.Rand) {
	begin := int64(cell) * cellMillis
	end := min(begin+cellMillis, p.millis)
	before := scale(p.passed, p.ordinary, p.weight)
	p.passed += p.weights[cell]
	p.fillSessions(b, s, begin, end, int(scale(p.passed, p.ordinary, p.weight)-before), rng)

	p.crawler.until(end, func(at, _ int64) { s.crawl(b, at) })
	p.flood.until(end, func(at, _ int64) { s.flood(b, at) })
	p.crowd.until(end, func(at, i int64) { s.crowd(b, at, p.clients[i%crowdSize]) })
	p.hot.until(end, func(at, _ int64) { s.hot(b, at) })
	p.dirty.until(end, func(at, i int64) { s.dirty(b, at, int(i%3)) })
}

// fillSessions adds n lines of ordinary sessions. A session that takes k lines
// takes the places of k random times and begins at the first of them.
func (p *plan) fillSessions(b *batch, s *shop, begin, end int64, n int, rng *rand.Rand) {
	times := make([]int64, n)
	for i := range times {
		times[i] = begin + rng.Int64N(end-begin)
	}
	slices.Sort(times)
	for want := len(b.lines) + n; len(b.lines) < want; {
		left := want - len(b.lines)
		s.session(b, times[n-left], end, left, 3+n/8)
	}
}

// until calls add with the time and the number of each line before end that
// has not been written.
func (t *planted) until(end int64, add func(at, i int64)) {
	for ; t.next < t.lines; t.next++ {
		at := t.begin
		if t.fading {
			at += scale(t.next*t.next, t.millis, t.lines*t.lines)
		} else {
			at += scale(t.next, t.millis, t.lines)
		}
		if at >= end {
			return
		}
		add(at, t.next)
	}
}

// truth returns what p plants.
func (p *plan) truth() Truth {
	return Truth{
		Crawler:    p.crawler.burst("", crawlerClient),
		Flood:      p.flood.burst(loginPath, floodClient),
		Crowd:      p.crowd.burst(searchPath, p.clients...),
		HotProduct: p.hot.burst(hotPath),
	}
}

func (t *planted) burst(path string, clients ...string) Burst {
	if t.lines == 0 {
		return Burst{}
	}
	at := func(ms int64) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	return Burst{
		Clients: clients,
		Path:    path,
		Begin:   at(t.begin),
		End:     at(t.begin + t.millis),
		Lines:   int(t.lines),
	}
}
