package follow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

const (
	journalName   = "journal"
	journalFormat = "journald-json"

	// journalSpan is how old the entries are that are read first, as of a file that is rotated each day.
	journalSpan = 24 * time.Hour

	// journalctl is started again after journalRetry, then after twice as long each time, up to
	// maxJournalRetry.
	journalRetry    = 500 * time.Millisecond
	maxJournalRetry = 30 * time.Second

	// journalSettled is how long journalctl takes at most to begin to print entries, or to say why it cannot read.
	journalSettled = time.Second
	maxComplaint   = 500 // bytes of them
)

// A journalPlace is how far the journal was read, in saved state.
type journalPlace struct {
	Since  time.Time `json:"since"`            // of the first entry
	Cursor string    `json:"cursor,omitempty"` // of the last entry whose events were all passed on
	Begun  int       `json:"begun,omitempty"`  // events of the entry after it that were passed on
}

// A journal is the journal of systemd, or a part of it, as journalctl prints it. The entry that was read
// last is printed again when journalctl is started again, so that it is known whether entries are missing.
type journal struct {
	stream
	wake  chan<- struct{}
	args  []string // of journalctl, that select entries
	place journalPlace

	cmd     *exec.Cmd
	running sync.WaitGroup
	errs    *complaints
	started time.Time
	settled bool // it has run for journalSettled, and all that it had to print was read
	resumed bool // the next line must be that of the cursor

	failures int // in a row
	retry    time.Time
}

func newJournal(r logReader, wake chan<- struct{}) (source, error) {
	args, err := journalArgs(r.path)
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("journalctl"); err != nil {
		return nil, fmt.Errorf("%s: %w: must be installed, with systemd, to read its journal", r.path, err)
	}
	if r.format, err = journalFormatOf(r.format); err != nil {
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	r.known = true
	return &journal{stream: stream{logReader: r}, wake: wake, args: args}, nil
}

// journalFormatOf returns the format of entries whose messages have that of inner.
func journalFormatOf(inner accesslog.Format) (accesslog.Format, error) {
	switch text := inner.String(); {
	case text == "":
		return accesslog.ParseFormat(journalFormat)
	case strings.HasPrefix(text, journalFormat):
		return inner, nil
	default:
		return accesslog.ParseFormat(journalFormat + ":" + text)
	}
}

var (
	journalField = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=.`)
	unitSuffixes = []string{".service", ".socket", ".scope", ".slice", ".timer", ".target", ".mount", ".path"}
)

// journalArgs returns the arguments of journalctl that select the entries of a log. Several units, several
// identifiers or several values of a field are alternatives; an entry must have one of each. What is on the two sides of a + are
// alternatives, too, as for journalctl.
func journalArgs(name string) (args []string, err error) {
	_, selection, some := strings.Cut(name, ":")
	if !some {
		return nil, nil
	}
	for item := range strings.SplitSeq(selection, ",") {
		isUnit := slices.ContainsFunc(unitSuffixes, func(s string) bool { return strings.HasSuffix(item, s) })
		switch {
		case journalField.MatchString(item), item == "+":
			args = append(args, item)
		case item == "" || strings.ContainsAny(item, "= \t"):
			return nil, fmt.Errorf("%s: %q: must be a unit such as ssh.service, a program such as sshd, or a match such as _COMM=sshd", name, item)
		case isUnit:
			args = append(args, "--unit="+item)
		case item == "sshd": // whose processes have names of their own since OpenSSH 9.8
			args = append(args, "--identifier=sshd", "--identifier=sshd-session", "--identifier=sshd-auth")
		default:
			args = append(args, "--identifier="+item)
		}
	}
	return args, nil
}

func (j *journal) begun() bool { return !j.place.Since.IsZero() }

// behind is true also while journalctl starts: the entries that it will print are older than new lines of other logs.
func (j *journal) behind() bool { return j.pipe != nil && !j.settled || j.hasLines() }

// refresh starts journalctl, again when it has ended and its lines were passed on.
func (j *journal) refresh(now time.Time) {
	if j.place.Since.IsZero() {
		j.place.Since = now.Add(-journalSpan)
	}
	if j.pipe != nil {
		ended, err := j.pipe.ended()
		switch {
		case !ended && now.Sub(j.started) >= journalSettled:
			j.failures, j.settled = 0, j.settled || !j.hasLines()
			j.complain(j.errs.problem())
			return
		case !ended || j.hasLines():
			return
		}
		j.close()
		j.failures++
		j.retry = now.Add(min(journalRetry<<min(j.failures-1, 10), maxJournalRetry))
		j.complain(fmt.Errorf("journalctl has ended, and is started again: %w", cmp.Or(errors.Join(j.errs.problem(), err), errEnded)))
	}
	if !now.Before(j.retry) {
		if err := j.start(now); err != nil {
			j.complain(err)
			j.retry = now.Add(maxJournalRetry)
		}
	}
}

var errEnded = errors.New("it has no error")

// start starts journalctl.
func (j *journal) start(now time.Time) error {
	args := []string{"--output=json", "--output-fields=MESSAGE,SYSLOG_IDENTIFIER,_HOSTNAME,_PID", "--all", "--follow", "--no-tail", "--no-pager"}
	if j.resumed = j.place.Cursor != ""; j.resumed {
		args = append(args, "--cursor="+j.place.Cursor)
	} else {
		args = append(args, fmt.Sprintf("--since=@%d", j.place.Since.Unix()))
	}
	cmd := exec.Command("journalctl", append(args, j.args...)...)
	j.errs = new(complaints)
	cmd.Stderr = j.errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	p := newPipe(j.wake)
	p.at.Begun = j.place.Begun
	j.cmd, j.pipe, j.started, j.settled = cmd, p, now, false
	j.running.Go(func() {
		err := p.fill(out)
		p.end(errors.Join(err, cmd.Wait()))
	})
	return nil
}

// readBlock passes on the events of the next entries. The first one after a start is known already.
func (j *journal) readBlock(_ []byte, each func(*match.Event), now time.Time) {
	if j.resumed {
		j.resumed = false
		if line, _, whole := bytes.Cut(j.pipe.lines(), []byte{'\n'}); whole && isEntry(line, j.place.Cursor) {
			j.pipe.advance(len(line) + 1)
			return
		}
		j.pipe.at.Begun = 0
		j.stats.Gaps++
		j.log.Warn("the last entry that was read was deleted from the journal: unread entries that were deleted, too, are lost", "file", j.path)
	}
	j.errs.clear()
	j.passNext(each, j.advanced, now)
}

// advanced notes the cursor of the last of lines. A line that is too long comes in parts, of which only the last has an end.
func (j *journal) advanced(lines []byte) {
	lines, whole := bytes.CutSuffix(lines, []byte{'\n'})
	if cursor := cursorOf(lines[bytes.LastIndexByte(lines, '\n')+1:]); whole && cursor != "" {
		j.place.Cursor = cursor
	}
}

// cursorOf returns the cursor of an entry. In a value of another field, the quotes are escaped.
func cursorOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"__CURSOR"`))
	rest = bytes.TrimLeft(rest, ": ")
	if len(rest) == 0 || rest[0] != '"' {
		return ""
	}
	cursor, _, _ := bytes.Cut(rest[1:], []byte{'"'})
	return string(cursor)
}

// isEntry reports whether a line is the entry with a cursor. What comes before its boot in the
// cursor says in which file it was found.
func isEntry(line []byte, cursor string) bool {
	entry := func(c string) string {
		_, e, _ := strings.Cut(c, ";b=")
		return e
	}
	found := cursorOf(line)
	return found == cursor || entry(found) != "" && entry(found) == entry(cursor)
}

func (j *journal) saved() savedLog {
	place := j.place
	if j.pipe != nil {
		place.Begun = j.pipe.at.Begun
	}
	return savedLog{Path: j.path, Newest: j.newest, Counted: j.counted, Journal: &place}
}

func (j *journal) resume(l *savedLog) {
	if l.Journal != nil {
		j.newest, j.counted, j.place = l.Newest, l.Counted, *l.Journal
	}
}

// close ends journalctl.
func (j *journal) close() {
	if j.pipe == nil {
		return
	}
	j.pipe.close()
	_ = j.cmd.Process.Kill() // unless it has ended
	j.running.Wait()
	j.place.Begun, j.pipe = j.pipe.at.Begun, nil
}

// complaints is what journalctl writes to its standard error.
type complaints struct {
	mu   sync.Mutex
	text []byte
}

func (c *complaints) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, b[:min(len(b), maxComplaint-len(c.text))]...)
	return len(b), nil
}

// problem returns them as an error, or nil if there are none.
func (c *complaints) problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(strings.Fields(string(c.text)), " ")
	if text = strings.TrimSuffix(text, " Pass -q to turn off this notice."); text == "" {
		return nil
	}
	return errors.New(text)
}

// clear deletes them, unless they say that entries may not be read.
func (c *complaints) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !bytes.Contains(c.text, []byte("permission")) && !bytes.Contains(c.text, []byte("not seeing messages")) {
		c.text = nil
	}
}
