//go:build unix

package fileperm_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/test/must"
)

// TestStrangers compares with the rule, for each mode, in a group of this process and
// in a group that it is not in.
func TestStrangers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	const foreign = 54_321
	groups := map[int]bool{os.Getegid(): true}
	if os.Getuid() == 0 {
		groups[foreign] = false
	} else {
		t.Log("SKIP a group that the process is not in: only root can give a file to one")
	}
	for gid, ours := range groups {
		must.Do(t, os.Chown(path, -1, gid))
		for mode := range fs.FileMode(0o1000) {
			must.Do(t, os.Chmod(path, mode))
			info := must.Get(os.Stat(path))(t)
			want := mode & 7
			if !ours {
				want = mode&7 | mode/8&7
			}
			if got := fileperm.Strangers(info); got != want {
				t.Fatalf("mode %04o, in the group: %v: strangers have %o, want %o", mode, ours, got, want)
			}
		}
	}
}
