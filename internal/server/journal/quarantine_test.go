package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/server/journal"
)

// TestFewBadFilesAreKept has a disk that damages the newest snapshot again and
// again: the newest few that were set aside are kept, and no number is used twice.
func TestFewBadFilesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for i := range 9 {
		d, found, err := journal.Open(path, ignored)
		if err != nil || len(found.Snapshot.Problems) != min(i, 1) {
			t.Fatalf("time %d: %+v, %v", i, found, err)
		}
		if err := errors.Join(d.WriteSnapshot(fill("state")), d.Close()); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // the names of others stay
			for _, name := range []string{"snapshot-1.bad", "mine.bad", "journal-00000001.bad", "snapshot-00000099.bad.old"} {
				if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		newest := filepath.Join(path, fmt.Sprintf("snapshot-%08d", i+1))
		if err := os.WriteFile(newest, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(path, "*.bad*"))
	for i := range kept {
		kept[i] = filepath.Base(kept[i])
	}
	want := []string{
		"journal-00000001.bad", "mine.bad", "snapshot-00000006.bad", "snapshot-00000007.bad", "snapshot-00000008.bad",
		"snapshot-00000099.bad.old", "snapshot-1.bad",
	}
	if err != nil || !slices.Equal(kept, want) {
		t.Errorf("%q, %v; want %q", kept, err, want)
	}
}
