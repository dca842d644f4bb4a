package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// A ledger is all that was charged to a key.
type ledger struct {
	windowtest.Charges
	over time.Time // when it was last charged beyond the limit
}

// A held is a reservation of the reference.
type held struct {
	id      string
	key     int
	cost    uint64
	entry   int // of the ledger
	ends    time.Time
	settled bool
}

func (l *ledger) used(now time.Time) uint64 { return l.In(now.UnixNano(), int64(modelSpan)) }

// TestReservationsModel has random takes, reservations, settlements, also late, twice and for more than was reserved, and
// charges, and compares with a ledger. Where no charge has exceeded the limit, an exact rule decides as the ledger does.
// No rule allows what the ledger does not.
func TestReservationsModel(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 60
	}
	seed := randtest.Seed(t)
	for name, limit := range map[string]string{"exact": "100 per 1m", "slots": "1000 per 1m"} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, uint64(len(limit))))
			n := uint64(100)
			if name == "slots" {
				n = 1000
			}
			for round := range rounds {
				synctest.Test(t, func(t *testing.T) {
					m := reservationModel{T: t, rnd: rnd, n: n, exact: name == "exact", over: round%2 == 1}
					m.run(fmt.Sprintf("version: 1\nlimits: [{name: r, key: user, limit: %s}]\n", limit))
				})
				if t.Failed() {
					t.Fatalf("seed %d, round %d", seed, round)
				}
			}
		})
	}
}

type reservationModel struct {
	*testing.T
	rnd   *rand.Rand
	n     uint64
	exact bool
	over  bool // charges may exceed the limit
	c     *engine.Session
	keys  [2]ledger
	held  []held
}

const modelSpan = time.Minute

func (m *reservationModel) run(rules string) {
	m.c = newEngine(m.T, rules).Session()
	for range 150 {
		if m.rnd.IntN(2) == 0 {
			time.Sleep(time.Duration(m.rnd.Int64N(int64(4 * time.Second))))
		}
		key := m.rnd.IntN(len(m.keys))
		cost := 1 + m.rnd.Uint64N(m.n/3)
		switch m.rnd.IntN(6) {
		case 0, 1, 2:
			m.take(key, cost)
		case 3, 4:
			m.settle()
		case 5:
			m.charge(key, cost)
		}
	}
}

// take takes, or reserves, and compares the decision.
func (m *reservationModel) take(key int, cost uint64) {
	terms := engine.Terms{}
	if m.rnd.IntN(4) > 0 {
		terms.Hold = time.Duration(1 + m.rnd.Int64N(int64(90*time.Second)))
	}
	must.Do(m, m.c.QueueTake("r", cost, terms, fmt.Sprint("k", key)))
	l, now := &m.keys[key], time.Now()
	used := l.used(now)
	for d, err := range m.c.Decide() {
		if err != nil && d.Err == nil {
			m.Fatal(err)
		}
		fits := used+cost <= m.n
		switch {
		case d.Allowed && !fits:
			m.Errorf("allowed %d with %d of %d used", cost, used, m.n)
		case m.exact && fits && !d.Allowed && now.Sub(l.over) >= modelSpan:
			m.Errorf("refused %d with %d of %d used", cost, used, m.n)
		}
		if !d.Allowed {
			continue
		}
		l.Add(now.UnixNano(), cost)
		if id, _ := m.c.ID(); terms.Hold > 0 {
			m.held = append(m.held, held{id: string(id), key: key, cost: cost, entry: len(l.Charges) - 1, ends: now.Add(terms.Hold)})
		}
	}
}

// settle settles any reservation, also one that was settled before or whose time has passed.
func (m *reservationModel) settle() {
	if len(m.held) == 0 {
		return
	}
	h := &m.held[m.rnd.IntN(len(m.held))]
	l, now := &m.keys[h.key], time.Now()
	actual := m.rnd.Uint64N(h.cost + 1)
	if m.over && m.rnd.IntN(4) == 0 {
		actual = m.rnd.Uint64N(2 * m.n)
	}
	settled, err := m.c.Settle(h.id, actual)
	if late := now.After(h.ends); late != (err != nil) || !late && settled == h.settled {
		m.Errorf("Settle returns %v, %v, for one that was settled: %v, and ends in %v", settled, err, h.settled, h.ends.Sub(now))
	}
	if err != nil || h.settled {
		return
	}
	h.settled = true
	if actual <= h.cost {
		l.Charges[h.entry].N = actual
		return
	}
	l.Add(now.UnixNano(), actual-h.cost)
	m.exceeded(l, now)
}

// charge charges what fits, or more.
func (m *reservationModel) charge(key int, cost uint64) {
	l, now := &m.keys[key], time.Now()
	if !m.over && l.used(now)+cost > m.n {
		return
	}
	if err := m.c.Charge("r", cost, fmt.Sprint("k", key)); err != nil {
		m.Error(err)
	}
	l.Add(now.UnixNano(), cost)
	m.exceeded(l, now)
}

func (m *reservationModel) exceeded(l *ledger, now time.Time) {
	if l.used(now) > m.n {
		l.over = now
	}
}
