//go:build linux

package storm

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestStorm runs seeds against the program lately in the folder that LATELY_STORM names.
//
//	make storm              # fixed seeds, for about a minute
//	make storm SEEDS=1000   # fresh seeds
//	make storm SEED=7       # one seed
//
// STORM_FIRST is the first seed and STORM_SEEDS the number of them. To see what storms find in another version of the program,
// put it into the folder.
func TestStorm(t *testing.T) {
	folder := os.Getenv("LATELY_STORM")
	if folder == "" {
		t.Skip("SKIP: storms take a minute or more; run make storm")
	}
	program := filepath.Join(folder, "lately")
	first, n := number(t, "STORM_FIRST", 1), number(t, "STORM_SEEDS", 60)
	if os.Getenv("STORM_FRESH") != "" {
		first = uint64(time.Now().UnixMicro())
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			c, begun := Draw(seed), time.Now()
			if findings := Run(t, c, program); len(findings) > 0 {
				t.Error(Report(c, findings))
			}
			t.Logf("%v: %v", c, time.Since(begun).Round(time.Millisecond))
		})
	}
}

// number returns the number in a variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
