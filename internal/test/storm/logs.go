//go:build linux

package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// logLine is a line of the log that a server follows; its path is counted by nothing else.
const (
	logLine = `198.51.100.200 - - [%s] "GET /log HTTP/1.1" 200 12 "-" "%d"` + "\n"
	logPath = "/log"
)

// writeLog writes lines to the followed log and rotates it, until ctx ends.
func (r *run) writeLog(ctx context.Context, random *rand.Rand) {
	s := r.servers[0]
	rotations := 0
	for wait(ctx, time.Duration(random.IntN(30))*time.Millisecond) {
		n := 1 + random.IntN(20)
		text := ""
		for range n {
			r.lines++
			text += fmt.Sprintf(logLine, time.Now().Format("02/Jan/2006:15:04:05 -0700"), r.lines)
		}
		cut := random.IntN(len(text)) // a line may be written in two parts
		if err := appendTo(s.logPath(), text[:cut]); err != nil {
			r.fail("storm", err.Error(), nil)
		}
		if err := appendTo(s.logPath(), text[cut:]); err != nil {
			r.fail("storm", err.Error(), nil)
		}
		if rotations < 5 && random.IntN(20) == 0 {
			rotations++
			for i := rotations - 1; i > 0; i-- {
				os.Rename(fmt.Sprint(s.logPath(), ".", i), fmt.Sprint(s.logPath(), ".", i+1))
			}
			os.Rename(s.logPath(), s.logPath()+".1")
			r.history.end(r.history.begin(0, rotated, ""))
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// allLines judges, when all faults are over, that each line of the log was counted once.
func (r *run) allLines() {
	s, begun := r.servers[0], r.now()
	for {
		c, err := s.dial()
		var n int64
		if err == nil {
			values, failed := c.do("SUM", "lines", logPath)
			if err = failed; err == nil {
				n = values[0].N
			}
			c.Close()
		}
		took := r.now() - begun
		if err == nil && n == int64(r.lines) {
			return
		}
		if n > int64(r.lines) || took > 2*spreads+r.pulse.margin(begun) {
			_, status, _ := s.get("/v1/status")
			_, logs, _ := strings.Cut(status, `"logs"`)
			r.fail("logs", fmt.Sprintf("%d lines are counted %v after the last was written, of %d (%v): %s", n, took, r.lines, err, logs[:min(len(logs), 600)]), nil)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
