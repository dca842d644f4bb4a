package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"

	"github.com/lately-go/lately/replay"
)

// isTerminal reports whether a Reader or Writer is a terminal that understands control
// sequences.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// widthOf returns how many columns a terminal has, 0 if out is none.
func widthOf(out io.Writer) int {
	if !isTerminal(out) {
		return 0
	}
	width, _, err := term.GetSize(out.(*os.File).Fd())
	if err != nil {
		return 0
	}
	return width
}

// visible returns s with what is not printable escaped as in a Go string, so
// that nothing in it reaches a terminal as a control sequence.
func visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// writeJSON writes v as one line of JSON, in which all that is not printable is escaped.
func writeJSON(out io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	safe := bytes.NewBuffer(make([]byte, 0, b.Len()))
	for _, r := range b.String() {
		switch {
		case r == '\n' || strconv.IsPrint(r):
			safe.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(safe, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(safe, `\u%04x`, r)
		}
	}
	_, err := safe.WriteTo(out)
	return err
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// showProgress draws a progress bar on w while a replay runs that takes more
// than a second, if w is a terminal. The returned function removes it.
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
	reading := "reading"
	if p.Files > 1 {
		reading = fmt.Sprintf("reading file %d of %d", max(p.File.Load(), 1), p.Files)
	}
	rate := float64(lines) / elapsed.Seconds() / 1e6
	if total == 0 || read == 0 {
		return fmt.Sprintf("%s: %.1f MB, %.2f M lines/s", reading, float64(read)/1e6, rate)
	}
	const width = 30
	done := min(float64(read)/float64(total), 1)
	full := int(done * width)
	left := time.Duration(float64(elapsed) * (1 - done) / done).Round(time.Second)
	return fmt.Sprintf("%s: [%s%s] %3.0f %%, %.2f M lines/s, %v left",
		reading, strings.Repeat("#", full), strings.Repeat(".", width-full), 100*done, rate, left)
}
