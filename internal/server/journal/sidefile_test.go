package journal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestSideFileSurvivesEveryCrash replaces a file and turns the power off at each operation of that, with each loss: it is
// the old one or the new one, and the new one if WriteFile has returned.
func TestSideFileSurvivesEveryCrash(t *testing.T) {
	seed := randtest.Seed(t)
	must.Do(t, sideFileCrashes(seed, plain))
	for name, wrap := range map[string]func(*memFS) fileSystem{
		"the file is not synced":      func(l *memFS) fileSystem { return lying{memFS: l, unsynced: "f.tmp"} },
		"the directory is not synced": func(l *memFS) fileSystem { return lying{memFS: l, noDir: true} },
	} {
		if sideFileCrashes(seed, wrap) == nil {
			t.Errorf("nothing is found when %s", name)
		}
	}
}

func sideFileCrashes(seed uint64, wrap func(*memFS) fileSystem) error {
	for n := 1; ; n++ {
		over := true
		for how := range numLosses {
			disk := newMemFS()
			j := &Journal{fs: wrap(disk)}
			if err := j.WriteFile("f", []byte("old")); err != nil {
				return err
			}
			disk.fault = powerAt(disk.ops + n)
			err := j.WriteFile("f", []byte("new"))
			over = over && err == nil && !disk.dead
			after := &Journal{fs: disk.reboot(how, rand.New(rand.NewPCG(seed, uint64(n))))}
			got, readErr := after.ReadFile("f", 3)
			if readErr != nil || string(got) != "new" && (err == nil || string(got) != "old") {
				return fmt.Errorf("power off at operation %d, %v: WriteFile returns %v, and then the file has %q, %v", n, how, err, got, readErr)
			}
		}
		if over {
			return nil
		}
	}
}

func TestSideFile(t *testing.T) {
	j, _, err := Open(t.TempDir(), func(Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if data, err := j.ReadFile("f", 3); data != nil || err != nil {
		t.Errorf("a missing file: %q, %v", data, err)
	}
	for _, text := range []string{"one", "2"} {
		must.Do(t, j.WriteFile("f", []byte(text)))
		if data, err := j.ReadFile("f", 3); string(data) != text || err != nil {
			t.Errorf("%q, %v, want %q", data, err, text)
		}
	}
	if _, err := j.ReadFile("f", 0); err == nil || !strings.Contains(err.Error(), "f: too long: must be at most 0 bytes") {
		t.Errorf("a file that is too long: %v", err)
	}
}
