package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// BenchmarkVerbs compares CHARGE and RESERVE with TAKE, as a pipeline of 100 sends them.
func BenchmarkVerbs(b *testing.B) {
	e := newEngine(b, "version: 1\nlimits: [{name: r, key: user, limit: 1_000_000_000 per 1h}]\n")
	c := e.Session()
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("user", i)
	}
	queued := func(terms engine.Terms) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				must.Do(b, c.QueueTake("r", 1, terms, keys[i%len(keys)]))
				if c.Queued() == 100 {
					for range c.Decide() {
						c.ID()
					}
				}
			}
			for range c.Decide() {
			}
		}
	}
	b.Run("TAKE", queued(engine.Terms{}))
	b.Run("RESERVE", queued(engine.Terms{Hold: time.Minute}))
	b.Run("CHARGE", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			must.Do(b, c.Charge("r", 1, keys[i%len(keys)]))
		}
	})
}
