package server

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/lately-go/lately/internal/fileperm"
	"github.com/lately-go/lately/rules"
)

// watch looks at the rules file every so often, and calls changed when what is in
// it is not what it was, which is at first what has the digest last. It reads the
// file each time: times of change say little where a directory is mounted from
// elsewhere, or a link is what changes.
func watch(ctx context.Context, path string, last [sha256.Size]byte, every time.Duration, changed func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := digest(path); now != last {
			last = now
			changed()
		}
	}
}

// digest returns what tells the contents of a file from others, and zero if it
// cannot be read.
func digest(path string) (sum [sha256.Size]byte) {
	data, err := fileperm.ReadFile(path, rules.MaxSize)
	if err != nil {
		return sum
	}
	return sha256.Sum256(data)
}
