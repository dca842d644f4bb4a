package accesslog_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// A corpus is the sample logs of another project, with its findings. They are not part of
// this repository; a variable of the environment names a checkout.
type corpus struct {
	name, variable, commit string
	sum                    string // of the names and the contents of the logs

	logs func(t *testing.T, dir string) []sampleLog

	known map[string]int // by log, lines in which the other project reads another client or time

	// Logs that name a client. At least this many must be read in part, and nine tenths of the events in them.
	named, part, read int
}

var corpora = []corpus{
	{
		name: "fail2ban", variable: "LATELY_FAIL2BAN", commit: "deffcbcd1712a3a0cbd79c1da324096ebf36d306",
		sum:  "2476665ae86823ba228401572054c3473d652a674c8b1d1d6a8d45cb9d0c8d25",
		logs: fail2banLogs,
		// the text after "ssh2: " may be part of the user's name
		known: map[string]int{"sshd": 1, "sshd-journal": 1},
		named: 98, part: 96, read: 89,
	},
	{
		name: "CrowdSec's hub", variable: "LATELY_HUB", commit: "b03cb59b2131ebfc5300f5f14828e29967efd1a5",
		sum:   "8299c525ec12af4641ea3561e5de850b925b4d6130bc45c0e610dc6455ba8223",
		logs:  hubLogs,
		named: 371, part: 353, read: 334,
	},
}

// A sampleLog is a log and the events that the other project finds in it.
type sampleLog struct {
	name          string
	text, journal []byte // lines of the file, and entries of the journal
	want          []wantedEvent
}

// A wantedEvent is a client and a time.
type wantedEvent struct {
	line   string // empty if unknown
	client string
	time   time.Time // zero if unknown
}

// TestCorpora reads all sample logs in the detected format.
func TestCorpora(t *testing.T) {
	for _, c := range corpora {
		t.Run(c.name, func(t *testing.T) {
			dir := os.Getenv(c.variable)
			if dir == "" {
				t.Skipf("SKIP sample logs of %s: %s names no checkout of %s", c.name, c.variable, c.commit)
			}
			logs := c.logs(t, dir)
			if sum := sumOf(logs); sum != c.sum {
				t.Fatalf("the logs in %s have the sum %s: must be %s, of commit %s", dir, sum, c.sum, c.commit)
			}
			c.check(t, logs)
		})
	}
}

// check reads the logs and compares how many are read with the least numbers.
func (c *corpus) check(t *testing.T, logs []sampleLog) {
	var total sampleResult
	named, detected, read, most := 0, 0, 0, 0
	for _, l := range logs {
		r := readSample(t, l)
		if r.format != "" {
			detected++
		}
		if r.events > 0 && !addressForm.Match(l.text) {
			t.Errorf("%s: read as %s, %d events, but it names nobody", l.name, r.format, r.events)
		}
		if r.wrong > c.known[l.name] {
			t.Errorf("%s: read as %s, %d lines have another client or time, such as %s", l.name, r.format, r.wrong, r.missed)
		}
		if len(l.want) == 0 {
			continue
		}
		named++
		total.want += r.want
		total.right += r.right
		if r.right*10 >= r.want*9 {
			read++
		}
		if r.right > 0 {
			most++
		}
		if r.right < r.want {
			t.Logf("%-40s %-10.10s %3d of %3d; %.150q", l.name, r.format, r.right, r.want, r.missed)
		}
	}
	t.Logf("%d logs: %d detected, %d name a client; %d of these are read in part, %d to nine tenths; %d of %d events", len(logs), detected, named, most, read, total.right, total.want)
	if named != c.named || most < c.part || read < c.read {
		t.Errorf("of %d logs %d are read in part and %d to nine tenths: must be %d, %d and %d", named, most, read, c.named, c.part, c.read)
	}
}

// addressForm finds what may be an address.
var addressForm = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]*:[0-9a-fA-F:]+:[0-9a-fA-F]*`)

func sumOf(logs []sampleLog) string {
	h := sha256.New()
	for _, l := range logs {
		fmt.Fprintf(h, "%s %d\n%s%s", l.name, len(l.text), l.text, l.journal)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// A sampleResult counts the lines of a log that were read correctly.
type sampleResult struct {
	format             string
	want, right, wrong int
	events             int
	missed             string // a line
}

// readSample reads a log in its detected format.
func readSample(t *testing.T, l sampleLog) (r sampleResult) {
	var all []seenEvent
	byLine := map[string][]seenEvent{}
	r.want = len(l.want)
	for _, text := range [][]byte{l.text, l.journal} {
		f, ok := accesslog.Detect(text)
		if !ok {
			continue
		}
		r.format = cmp.Or(r.format, f.String())
		for line, e := range eventsIn(t, l.name, text, f) {
			all = append(all, e)
			byLine[line] = append(byLine[line], e)
			r.events++
		}
	}
	for _, w := range l.want {
		found, bad := false, false
		candidates := all
		if w.line != "" {
			candidates = byLine[w.line]
		}
		for _, e := range candidates {
			found = found || e.is(w)
			bad = bad || w.line != "" && !e.is(w)
		}
		switch {
		case found:
			r.right++
		case bad:
			r.wrong++
			r.missed = cmp.Or(r.missed, "WRONG "+w.line)
		default:
			r.missed = cmp.Or(r.missed, w.line, w.client+" "+w.time.String())
		}
	}
	return r
}

// A seenEvent is an event that was read.
type seenEvent struct {
	client netip.Addr
	name   string
	time   time.Time
	local  bool // the line names no zone
}

// is reports whether the event equals that of the other project.
func (e seenEvent) is(w wantedEvent) bool {
	addr, isAddr := address.Parse(w.client)
	return (e.name == w.client || isAddr && e.client == addr) && (w.time.IsZero() || sameClock(e.time, w.time, e.local))
}

// eventsIn returns the events of a log with their lines.
func eventsIn(t *testing.T, name string, text []byte, f accesslog.Format) iter.Seq2[string, seenEvent] {
	return func(yield func(string, seenEvent) bool) {
		p, _ := f.NewParser(accesslog.Options{Year: 2005})
		var ev match.Event
		for len(text) > 0 {
			var line []byte
			line, text, _ = accesslog.CutLine(text)
			if !p.Parse(line, &ev) {
				continue
			}
			addr, ok := address.Parse(string(ev.Get(match.Client)))
			if ok && !bytes.Contains(line, ev.Get(match.Client)) && !bytes.Contains(line, []byte(addr.String())) {
				t.Errorf("%s: client %s is not in %q", name, addr, line)
			}
			if !yield(string(line), seenEvent{addr, string(ev.Get(match.Client)), ev.Time, p.Zoneless()}) {
				return
			}
		}
	}
}

// sameClock reports whether two times are the same, up to a second, a zone that the line does
// not name, and a year.
func sameClock(a, b time.Time, local bool) bool {
	if d := a.Sub(b).Abs(); d <= time.Second {
		return true
	}
	if !local {
		return false
	}
	b = b.AddDate(a.Year()-b.Year(), 0, 0)
	d := a.Sub(b).Abs()
	rest := d % (15 * time.Minute)
	return d < 15*time.Hour && min(rest, 15*time.Minute-rest) <= time.Second
}

// fail2banLogs returns the logs in fail2ban's tests: a comment before a line has its time and
// host.
func fail2banLogs(t *testing.T, dir string) (logs []sampleLog) {
	root := filepath.Join(dir, "fail2ban/tests/files/logs")
	for _, path := range filesOf(t, root, "") {
		text := must.Get(os.ReadFile(path))(t)
		l := sampleLog{name: strings.TrimPrefix(path, root+"/")}
		var said struct {
			Time, Host string
			Match      bool
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\r\n")
			if comment, ok := strings.CutPrefix(line, "# failJSON:"); ok {
				said.Time, said.Host, said.Match = "", "", false
				if err := json.Unmarshal([]byte(comment), &said); err != nil {
					t.Fatalf("%s: %s: %v", path, comment, err)
				}
				continue
			}
			if strings.HasPrefix(line, "#") {
				continue
			}
			names := said.Match && strings.Contains(line, said.Host) && !slices.Contains(noClients, said.Host)
			if said.Match && said.Time == "" && !beginsWithTime.MatchString(line) { // as fail2ban reads it from the journal
				entry := journalEntry(line)
				l.journal = append(append(l.journal, entry...), '\n')
				if names {
					l.want = append(l.want, wantedEvent{entry, said.Host, entryTime})
				}
			} else {
				l.text = append(append(l.text, line...), '\n')
				if names {
					l.want = append(l.want, wantedEvent{line, said.Host, fail2banTime(t, l.name, line, said.Time)})
				}
			}
			said.Match = false
		}
		logs = append(logs, l)
	}
	return logs
}

// noClients are hosts in the samples that no client can have.
var noClients = []string{"", "0.0.0.0", "192.030.0.6", "192.0.2.09"}

// fail2banTime returns the time that a line has.
func fail2banTime(t *testing.T, name, line, said string) time.Time {
	zone := must.Get(time.LoadLocation("Europe/Zurich"))(t) // of fail2ban's tests

	switch name { // fail2ban does not read the zones of their times
	case "cowrie":
		zone = time.UTC
	case "3proxy":
		zone = time.FixedZone("", 3*60*60)
	}
	at, _ := time.ParseInLocation("2006-01-02T15:04:05", strings.Split(said, ".")[0], zone)
	if said == "" {
		return time.Time{}
	}
	if strings.HasPrefix(line, "@4") { // it takes TAI64N, which was 10 seconds ahead of UTC in 1970, for UTC
		at = at.Add(-10 * time.Second)
	}
	return at
}

var beginsWithTime = regexp.MustCompile(`^(?:20\d\d-|[A-Z][a-z]{2} [ \d]\d )`)

// entryTime is the time of the entries of the journal.
var entryTime = time.Unix(1523946306, 0)

// journalEntry returns the entry of the journal that fail2ban writes as line, maybe behind a time
// without a year.
func journalEntry(line string) string {
	line = strings.TrimPrefix(line, "0000-12-30 00:00:00 ")
	entry := map[string]string{"__REALTIME_TIMESTAMP": fmt.Sprint(entryTime.UnixMicro()), "MESSAGE": line}
	if m := regexp.MustCompile(`^(\S+) ([^\[ :]+)(?:\[(\d+)\])?: +(.*)`).FindStringSubmatch(line); m != nil {
		entry["_HOSTNAME"], entry["SYSLOG_IDENTIFIER"], entry["_PID"], entry["MESSAGE"] = m[1], m[2], m[3], m[4]
	}
	text, _ := json.Marshal(entry)
	return string(text)
}

var (
	hubClient = regexp.MustCompile(`^results\["[^"]*"\]\["([^"]*)"\]\[(\d+)\]\.Evt\.Meta\["source_ip"\] == "([^"]*)"`)
	hubTime   = regexp.MustCompile(`^results\["[^"]*"\]\["([^"]*)"\]\[(\d+)\]\.Evt\.Enriched\["MarshaledTime"\] == "([^"]*)"`)
	hubSource = regexp.MustCompile(`GetMeta\("source_ip"\) == "([^"]*)"|"([0-9a-f.:]+)" in results\[\d+\]\.Overflow\.GetSources\(\)`)
)

// hubTimes are logs for which only clients are compared.
var hubTimes = map[string]string{
	"aws-alb-logs/aws-alb-logs.log":     "the hub reads when the request began, not when the log was written",
	"bitwarden-logs/bitwarden-logs.log": "the hub does not read the zone",
	"jellyfin-logs/jellyfin-logs.log":   "the hub does not read the zone",
}

// hubLogs returns the logs in the tests of CrowdSec's hub: files beside them have what its parsers
// found.
func hubLogs(t *testing.T, dir string) (logs []sampleLog) {
	root := filepath.Join(dir, ".tests")
	for _, path := range filesOf(t, root, ".log") {
		text := must.Get(os.ReadFile(path))(t)
		l := sampleLog{name: strings.TrimPrefix(path, root+"/"), text: append(bytes.TrimSuffix(text, []byte("\n")), '\n')}
		wanted := map[wantedEvent]bool{}
		parsed, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "parser.assert"))
		events := map[string]wantedEvent{}
		for line := range strings.Lines(string(parsed)) {
			if m := hubClient.FindStringSubmatch(line); m != nil {
				e := events[m[1]+m[2]]
				e.client = m[3]
				events[m[1]+m[2]] = e
			}
			if m := hubTime.FindStringSubmatch(line); m != nil {
				e := events[m[1]+m[2]]
				e.time, _ = time.Parse(time.RFC3339, m[3])
				events[m[1]+m[2]] = e
			}
		}
		if hubTimes[l.name] != "" {
			for key, e := range events {
				events[key] = wantedEvent{client: e.client}
			}
		}
		for _, e := range events {
			if _, ok := address.Parse(e.client); ok && !e.time.IsZero() {
				wanted[e] = true
			}
		}
		if len(wanted) == 0 {
			for _, e := range events {
				if _, ok := address.Parse(e.client); ok {
					wanted[e] = true
				}
			}
		}
		if len(wanted) == 0 {
			found, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "scenario.assert"))
			for _, m := range hubSource.FindAllStringSubmatch(string(found), -1) {
				client := cmp.Or(m[1], m[2])
				if _, ok := address.Parse(client); ok && strings.Contains(string(text), client) {
					wanted[wantedEvent{client: client}] = true
				}
			}
		}
		l.want = slices.SortedFunc(maps.Keys(wanted), func(a, b wantedEvent) int {
			return cmp.Or(cmp.Compare(a.client, b.client), a.time.Compare(b.time))
		})
		logs = append(logs, l)
	}
	return logs
}

// filesOf returns the files below a folder, in order.
func filesOf(t *testing.T, root, suffix string) (paths []string) {
	must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}
