package lately

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	like, chunk := dumpTable(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	slow := time.Duration(0)
	begin := time.Now()
	n := 0
	for ; time.Since(begin) < 5*time.Second; n++ {
		again := bytes.Clone(chunk)
		for range 1 + rnd.IntN(4) {
			again[rnd.IntN(min(len(again), 10+rnd.IntN(len(again))))] = byte(rnd.Uint32())
		}
		at := time.Now()
		importAnyTable(t, like, again)
		slow = max(slow, time.Since(at))
	}
	t.Log(n, slow)
}
