//go:build unix

package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestDamagedState damages the data directory of a server that follows a log at one place, or at two. The next server
// starts, reports that records are lost, and counts and bans nothing that the first has not: also if the damaged record is
// the position in the log.
func TestDamagedState(t *testing.T) {
	c, log := following(t)
	c.SnapshotEvery = time.Hour
	now := time.Now().Truncate(time.Second)
	s, _ := started(t, c)
	const clients, each = 40, 12
	for i := range clients {
		log.requests(fmt.Sprint("192.0.2.", i), now, each)
	}
	last := fmt.Sprint("192.0.2.", clients-1)
	eventually(t, "the lines are counted", func() bool { return requestsOf(t, s, last) == each })
	must.Do(t, s.save())
	for i := range 20 {
		must.Get(s.engine.Bans().Ban("flood", []string{fmt.Sprint("192.0.2.", i)}, time.Hour, "", "test"))(t)
	}
	whole := must.Get(os.ReadFile(filepath.Join(c.Data, "state")))(t)
	log.requests("198.51.100.1", now.Add(time.Hour), 1) // of a client that is new: it is read when all else is, and counts in any case

	single, double := 40, 25
	if testing.Short() {
		single, double = 6, 3
	}
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	position, again := bytes.Index(whole, []byte(log.path)), bytes.LastIndex(whole, []byte(log.path))
	for i := range 2 + single + double {
		places := []int{rng.IntN(len(whole))}
		switch {
		case i == 0:
			places[0] = position
		case i == 1:
			places = []int{position, again} // all records of the position in the log
		case i > 1+single:
			places = append(places, rng.IntN(len(whole)))
		}
		t.Run(fmt.Sprint(places), func(t *testing.T) {
			damaged := append([]byte(nil), whole...)
			for _, at := range places {
				damaged[at] ^= byte(1 + rng.IntN(255))
			}
			c := c
			c.Data = t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(c.Data, "state"), damaged, 0o600))
			s, _ := started(t, c)
			eventually(t, "the rest of the log is read", func() bool { return requestsOf(t, s, "198.51.100.1") == 1 })
			lost := 0
			for i := range clients {
				switch n := requestsOf(t, s, fmt.Sprint("192.0.2.", i)); {
				case n > each:
					t.Errorf("a client has %d requests, and had %d", n, each)
				case n < each:
					lost++
				}
			}
			bans := bansOf(t, s)
			for i := 20; i < clients; i++ {
				if b, ok := bans[fmt.Sprint("192.0.2.", i)]; ok {
					t.Errorf("a ban that was not there: %+v", b)
				}
			}
			if missing := 20 - len(bans); missing > len(places) {
				t.Errorf("%d bans are lost", missing)
			}
			if lost != 0 && lost != clients {
				t.Errorf("the counts of %d clients are lost; want all or none, since they are one record", lost)
			}
			if i <= 1 && (s.storage.lost != uint64(1+i) || lost > 0 || len(bans) != 20) {
				t.Errorf("without %d copies of the position, %d records are lost, with the counts of %d clients and %d bans", 1+i, s.storage.lost, lost, 20-len(bans))
			}
		})
	}
}
