package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/replay"
)

// isTerminal reports whether w is a terminal that understands more than text.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// showProgress draws a progress bar on w while a replay runs that takes more
// than a second, if w is a terminal. The returned function wipes it away.
func showProgress(w io.Writer, p *replay.Progress) (stop func()) {
	if !isTerminal(w) {
		return func() {}
	}
	started := time.Now()
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		drawn := false
		for {
			select {
			case <-quit:
				if drawn {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case now := <-tick.C:
				if elapsed := now.Sub(started); elapsed >= progressAfter {
					fmt.Fprintf(w, "\r\x1b[K%s", progressLine(p, elapsed))
					drawn = true
				}
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// progressLine is one state of the progress bar.
func progressLine(p *replay.Progress, elapsed time.Duration) string {
	if rules := p.Judging.Load(); rules > 0 {
		return fmt.Sprintf("judging: %d of %d", p.Judged.Load(), rules)
	}
	read, total, lines := p.Read.Load(), p.Total.Load(), p.Lines.Load()
	rate := float64(lines) / elapsed.Seconds() / 1e6
	if total == 0 || read == 0 {
		return fmt.Sprintf("reading: %.1f MB, %.2f M lines/s", float64(read)/1e6, rate)
	}
	const width = 30
	done := min(float64(read)/float64(total), 1)
	full := int(done * width)
	left := time.Duration(float64(elapsed) * (1 - done) / done).Round(time.Second)
	return fmt.Sprintf("reading: [%s%s] %3.0f %%, %.2f M lines/s, %v left",
		strings.Repeat("#", full), strings.Repeat(".", width-full), 100*done, rate, left)
}
