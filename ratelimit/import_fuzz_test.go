package ratelimit_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// dumpRules are rules of all kinds.
func dumpRules(t testing.TB) (rules []ratelimit.Rule) {
	for _, f := range foes {
		r := limitRule(t, f.name, per(min(f.high, 300), time.Minute), per(400, time.Hour))
		r.Algorithm = f.algorithm
		if f.algorithm == ratelimit.Calendar {
			r.Zone = newYork(t)
		}
		r.Ban = &ratelimit.Ban{After: 20, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour, Factor: 2}
		rules = append(rules, r)
	}
	adapt := limitRule(t, "adapt", per(50, time.Minute))
	adapt.Adapt = &ratelimit.Adapt{Above: 3, Steps: []ratelimit.AdaptStep{{Below: 1, Limit: 40}}}
	return append(rules, adapt)
}

// dumpOf returns the chunks of a store with keys under all rules.
func dumpOf(t testing.TB, set *ratelimit.Set) [][]byte {
	m, l := mustMemory(t, set, ratelimit.Config{Budget: 16 << 20})
	for i := range int64(300) {
		key := fmt.Sprint("k", i%4)
		if i%7 == 0 {
			key = "a key of more than fifteen bytes"
		}
		takeKeyN(l, second(i/2), key, uint64(i%5))
	}
	for _, b := range []ratelimit.BanRecord{
		{Rule: "exact", Key: []string{"by hand"}, Until: second(5000), Reason: "spam", Source: "ada"},
		{Rule: "exact", Key: []string{"imported"}, Until: second(5000), Reason: "because", Source: "rule"},
		{Rule: "gcra", Key: []string{"plain"}, Since: second(-4000), Until: second(5000)},
	} {
		must.Do(t, m.Ban(context.Background(), b))
	}
	return exported(m, second(150))
}

// TestImportOfTornChunks cuts chunks at some bytes, in the long form at all, and
// flips a bit there. Whatever is restored of that can be exported and restored
// again.
func TestImportOfTornChunks(t *testing.T) {
	set := mustSet(t, dumpRules(t)...)
	for _, chunk := range dumpOf(t, set) {
		step := 1
		switch {
		case testing.Short():
			step += len(chunk) / 2
		case !longForm():
			step += len(chunk) / 12
		}
		for n := 0; n < len(chunk); n += step {
			importAnything(t, set, chunk[:n])
			importAnything(t, set, sealed(chunk[:n]))
			again := bytes.Clone(chunk)
			again[n] ^= 1 << (n % 8)
			importAnything(t, set, again)
			importAnything(t, set, sealed(again))
		}
	}
}

// sealed returns a chunk, whose last bytes are taken for its checksum, with the
// right one.
func sealed(chunk []byte) []byte {
	return snapshot.Seal(bytes.Clone(chunk[:max(0, len(chunk)-4)]))
}

// importAnything imports any bytes, at a time before their export and at one
// after.
func importAnything(t *testing.T, set *ratelimit.Set, chunk []byte) {
	for _, now := range []time.Time{second(100), second(200)} {
		m, l := mustMemory(t, set, ratelimit.Config{Budget: 16 << 20, Bans: 1000})
		did, err := m.ImportAt(now, chunk)
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("an error that quotes too much: %v", err)
		}
		if did == (window.Imported{}) {
			continue
		}
		takeKeyN(l, now, "k1", 1)
		again, _ := mustMemory(t, set, ratelimit.Config{Budget: 16 << 20, Bans: 1000})
		mustImport(t, again, now, exported(m, now))
	}
}

// FuzzImport imports any bytes: without a panic, and the restored state is valid.
func FuzzImport(f *testing.F) {
	set := mustSet(f, dumpRules(f)...)
	for _, chunk := range dumpOf(f, set) {
		f.Add(chunk)
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		importAnything(t, set, chunk)
		importAnything(t, set, sealed(chunk))
	})
}
