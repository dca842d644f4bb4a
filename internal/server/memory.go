package server

import (
	"cmp"
	"fmt"

	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/httpapi"
	"github.com/lately-go/lately/internal/server/reservations"
)

const (
	mib = 1 << 20

	// DefaultMemory is the Memory by default: 1 GiB.
	DefaultMemory = 1024 * mib

	// maxKeepEvents is the most KeepEvents: some ten million events.
	maxKeepEvents = 1024 * mib

	// minMemory is the least Memory.
	minMemory = 256 * mib

	// defaultConnections is how many connections a listener has with DefaultMemory.
	defaultConnections = 10_000
)

// shareMemory sets the budgets to their parts of c.Memory without what kept events need. Without c.Memory, they are parts of DefaultMemory.
// The rest is for connections, subscribers, history and code.
func (c *Config) shareMemory() error {
	kept := keptMemory(c.KeepEvents)
	whole := c.Memory - kept
	switch {
	case c.Memory == 0:
		whole = DefaultMemory
	case whole < minMemory && kept > 0:
		return fmt.Errorf("memory: %d bytes: must be at least %d MiB with keep-events of %d, which takes %d MiB with a trial", c.Memory, (minMemory+kept+mib-1)/mib, c.KeepEvents, kept/mib)
	case whole < minMemory:
		return fmt.Errorf("memory: %d bytes: must be at least %d MiB", whole, minMemory/mib)
	}
	c.limitBudget, c.counterBudget = whole/4, whole/4
	c.callerBudget, c.hotBudget, c.requestBudget = whole/16, whole/16, whole/16
	c.maxEnforced = int(whole / 16 / enforce.NetworkBytes)
	c.maxSettled = int(whole / 32 / reservations.Bytes)
	c.MaxConnections = cmp.Or(c.MaxConnections, int(min(defaultConnections, defaultConnections*whole/DefaultMemory)))
	c.Memory = whole + kept
	return nil
}

// keptMemory returns the memory for that many bytes of events: with what it takes to try a
// draft on them.
func keptMemory(bytes int64) int64 {
	if bytes == 0 {
		return 0
	}
	return 8*bytes + httpapi.TrialMemory
}

// Memory returns Config.Memory, or its default.
func (s *Server) Memory() int64 { return s.config.Memory }
