package drive

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// threads returns how long the threads of this process have run, and how long they have
// been ready to run without a core, as Linux counts it. ok is false where it does not.
func threads() (ran, waited time.Duration, ok bool) {
	names, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		var r, w time.Duration
		if _, err := fmt.Sscan(string(text), &r, &w); err == nil {
			ran, waited, ok = ran+r, waited+w, true
		}
	}
	return ran, waited, ok
}
