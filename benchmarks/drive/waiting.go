package drive

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// waiting returns how long the threads of this process have been ready to run
// without a core, as Linux counts it, or -1 where it does not.
func waiting() (sum time.Duration) {
	names, _ := filepath.Glob("/proc/self/task/*/schedstat")
	if len(names) == 0 {
		return -1
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited time.Duration
		if _, err := fmt.Sscan(string(text), &ran, &waited); err == nil {
			sum += waited
		}
	}
	return sum
}
