package follow

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

// Config says which logs a [Follower] reads.
type Config struct {
	// Logs is the logs; at least one.
	Logs []Log

	// Lateness is how much older than the newest event of its log an event may be, and
	// still be passed on in the order of time; 0 means that events are passed on as they
	// are read.
	Lateness time.Duration

	// Silence is for how long a log may have no line until a warning is logged; 0 means
	// that there is none.
	Silence time.Duration

	// Read is called with each event when it is read, before it is judged or waits, and may change its
	// fields; nil means nothing.
	Read func(*match.Event)

	// Judge takes the events, one at a time. An event and its values are valid until it
	// returns.
	Judge func(*match.Event)

	// Passed is called between lines, after some of them and after each poll, by the goroutine of
	// Run. It may wait; files are not read meanwhile. If it returns an error, Run ends with that, and
	// no more events are passed on. If Passed is set, events are passed on as they are read, even with Lateness, and
	// the receiver makes them wait, up to [Point.Until]. Without Lateness, those of several logs are in the order of
	// time from one block of lines to the next only. nil means nothing.
	Passed func(Point) error

	// Opened is called by Run when it has opened the first file of a log that was not there before: its
	// place should then be saved. nil means nothing.
	Opened func()

	// Stdin is for a Log that is the standard input.
	Stdin *Input

	// Log receives what happens to the files; nil discards it.
	Log *slog.Logger
}

// A Log is a log to follow. Path is that of a file, of a FIFO, of a directory of logs, or a pattern
// of paths as of [filepath.Match]; "-" for the standard input; or "journal" for the journal of
// systemd. In the journal, "journal:" and a list separated by commas selects units such as
// ssh.service, programs such as sshd, and matches such as _UID=0.
type Log struct {
	Path   string
	Format accesslog.Format // the zero Format means that it is found from the lines
	Zone   *time.Location   // of times that name none; nil means time.Local

	empty bool // a directory or pattern had no file at the last look
}

func (l *Log) isStdin() bool { return l.Path == "-" }

func (l *Log) isJournal() bool {
	return l.Path == journalName || strings.HasPrefix(l.Path, journalName+":")
}

// many reports whether l is not one log.
func (l *Log) many() bool {
	if l.isStdin() || l.isJournal() {
		return false
	}
	info, err := os.Stat(l.Path)
	return err == nil && info.IsDir() || err != nil && strings.ContainsAny(l.Path, "*?[")
}
