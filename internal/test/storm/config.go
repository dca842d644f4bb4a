//go:build linux

package storm

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Config is what a seed draws.
type Config struct {
	Seed    uint64
	Servers int
	Limits  []Limit

	Store        bool
	StoreTimeout time.Duration // 0: the program's default
	Batched      bool
	Away         bool // the servers start while the store cannot be reached

	Data     bool // the server keeps its state in a directory
	Follow   bool
	DenyFile bool
	TLS      bool
	Socket   bool // RESP is on a Unix socket
	Tokens   bool
	Poll     bool // the rules file is polled, so a change needs no command

	// Not every seed has every fault: one may hide what another does.
	Kills, Ends, Stops, Reloads, Outages, Restores, FullDisks, Descriptors, Floods bool

	Lasting time.Duration // of traffic and faults
}

// versions is the number of versions of the rules file.
const versions = 6

// slow is a timeout of the store that ends no call only because the machine is busy.
const slow = 5 * time.Second

// Draw returns the configuration of a seed.
func Draw(seed uint64) *Config {
	r := source(seed, "config")
	c := &Config{
		Seed: seed, Servers: 1, Store: r.IntN(3) > 0, Data: r.IntN(2) == 0, TLS: r.IntN(5) == 0, Tokens: r.IntN(4) == 0,
		DenyFile: r.IntN(2) == 0, Poll: r.IntN(2) == 0, Follow: r.IntN(3) == 0, Lasting: 2500 * time.Millisecond,
	}
	if c.Store {
		c.Servers = 1 + r.IntN(3)
		c.Batched = r.IntN(5) == 0
		c.Away = r.IntN(5) == 0
		if r.IntN(4) > 0 {
			c.StoreTimeout = slow
		}
	}
	c.Kills, c.Ends, c.Stops, c.Reloads = r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(3) > 0
	c.Outages, c.Restores = c.Store && r.IntN(3) > 0, c.Store && r.IntN(4) == 0
	c.FullDisks, c.Descriptors = c.Data && r.IntN(3) == 0, r.IntN(6) == 0
	c.Floods = !c.TLS && r.IntN(10) == 0
	c.Follow = c.Follow && c.Data && !c.Store
	spans, most := []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, time.Minute, time.Hour}, 4
	if !c.Store && r.IntN(3) == 0 {
		// With one limit and a short span much more of what may go wrong when rules change is tried.
		spans, most = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}, 1
	}
	c.Limits = drawLimits(r, spans, most)
	c.Socket = !c.TLS && source(seed, "socket").IntN(3) == 0
	return c
}

// source returns a source of random numbers for one purpose of a seed: what one part draws
// does not depend on how often another does.
func source(seed uint64, purpose string) *rand.Rand {
	var h uint64 = 14695981039346656037
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

// String describes c in a line.
func (c *Config) String() string {
	kind := "memory"
	if c.Store {
		kind = "a store"
	}
	s := fmt.Sprintf("seed %d: %d server(s), %s", c.Seed, c.Servers, kind)
	for _, of := range []struct {
		on   bool
		text string
	}{
		{c.StoreTimeout > 0, "store-timeout " + c.StoreTimeout.String()},
		{c.Batched, "batched"},
		{c.Away, "started while the store is away"},
		{c.Data, "data"},
		{c.Follow, "a followed log"},
		{c.DenyFile, "deny file"},
		{c.TLS, "TLS"},
		{c.Socket, "RESP on a Unix socket"},
		{c.Tokens, "tokens"},
		{c.Poll, "rules polled"},
		{c.Kills, "kills"},
		{c.Ends, "restarts"},
		{c.Stops, "stops"},
		{c.Reloads, "reloads"},
		{c.Outages, "outages"},
		{c.Restores, "a store that begins empty"},
		{c.FullDisks, "full disks"},
		{c.Descriptors, "few descriptors"},
		{c.Floods, "floods"},
	} {
		if of.on {
			s += ", " + of.text
		}
	}
	return s
}
