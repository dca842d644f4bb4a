package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// An overlay is a directory with more files in it.
type overlay struct {
	fs.FS
	more fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if f, err := o.more.Open(name); err == nil && o.more[name] != nil {
		return f, nil
	}
	return o.FS.Open(name)
}

// sampled is what fail2ban finds in the sample log of a jail: lines, addresses and times.
type sampled struct {
	Log   string
	Found [][3]any
}

// findings returns what a file of patterns finds in a log: lines, addresses and times.
func findings(t *testing.T, p PatternFile, log []byte) (all []string) {
	t.Helper()
	format := must.Get(accesslog.ParsePatterns(p.Name, p.Data))(t)
	parser := must.Get(format.NewParser(accesslog.Options{}))(t)
	var ev match.Event
	number := 0
	for line := range bytes.Lines(log) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if parser.Parse(line, &ev) {
			all = append(all, fmt.Sprintf("%d %s %d", number, ev.Get(match.Client), ev.Time.Unix()))
		}
	}
	return all
}

// differences are the jails that find less than fail2ban in its sample logs, with the reason and
// how many addresses they lack. Each has a note.
var differences = map[string]struct {
	lacking int
	why     string
}{
	"sshd":            {10, "lines of one connection are not joined"},
	"slapd":           {1, "lines of one connection are not joined"},
	"sendmail-reject": {2, "lines of one connection are not joined"},
	"mongodb-auth":    {4, "a pattern of several lines"},
	"guacamole":       {3, "lines without a time, which the line before has"},
	"ejabberd-auth":   {1, "a line without a time, which the line before has"},
	"asterisk":        {1, "a line without a time"},
	"murmur":          {1, "a line without a time"},
	"named-refused":   {1, "a line without a time"},
}

// TestSameAddressesAsFail2ban converts all jails of fail2ban, and compares their findings in its own sample logs: line,
// address and time. LATELY_FAIL2BAN names a checkout of its source.
func TestSameAddressesAsFail2ban(t *testing.T) {
	root := os.Getenv("LATELY_FAIL2BAN")
	if root == "" {
		t.Skip("SKIP comparison with fail2ban: LATELY_FAIL2BAN does not name a checkout of its source")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIP comparison with fail2ban: there is no python3 here")
	}
	out := must.Get(exec.CommandContext(t.Context(), python, "testdata/fail2ban.py", root).Output())(t)
	var samples map[string]sampled
	must.Do(t, json.Unmarshal(out, &samples))
	var enabled strings.Builder
	for jail := range samples {
		fmt.Fprintf(&enabled, "[%s]\nenabled = true\n", jail)
	}
	r := Fail2ban(overlay{os.DirFS(filepath.Join(root, "config")), fstest.MapFS{"jail.local": {Data: []byte(enabled.String())}}}, "patterns")
	converted, same := 0, 0
	for jail, sample := range samples {
		log := must.Get(os.ReadFile(filepath.Join(root, "fail2ban/tests/files/logs", sample.Log)))(t)
		var got []string
		if i := slices.IndexFunc(r.Patterns, func(p PatternFile) bool { return p.Name == jail+".regex" }); i >= 0 {
			converted++
			got = findings(t, r.Patterns[i], log)
		}
		lacking := compareFindings(t, jail, got, sample)
		if known := differences[jail]; lacking != known.lacking {
			t.Errorf("%s: %d addresses of fail2ban are not found, want %d", jail, lacking, known.lacking)
		} else if lacking > 0 {
			t.Logf("%s: %d of %d addresses are not found: %s", jail, lacking, len(sample.Found), known.why)
		} else {
			same++
		}
	}
	t.Logf("%d jails, %d converted, %d with the same lines, addresses and times", len(samples), converted, same)
	if same < 85 {
		t.Errorf("%d jails with the same addresses, want at least 85", same)
	}
	checkNotes(t, r)
}

// sampleTAI is the time of the lines with a time in TAI64N, whose seconds fail2ban takes for UTC.
const sampleTAI = 1284616260

// compareFindings reports findings that fail2ban does not have, and returns how many findings are missing.
func compareFindings(t *testing.T, jail string, got []string, sample sampled) (lacking int) {
	t.Helper()
	var want []string
	for _, f := range sample.Found {
		if at, ok := f[2].(float64); ok {
			if jail == "dovecot" && int64(at) == sampleTAI { // which was 10 seconds ahead of UTC in 1970
				at -= 10
			}
			want = append(want, fmt.Sprintf("%v %v %d", f[0], f[1], int64(at)))
		} else {
			want = append(want, fmt.Sprintf("%v %v", f[0], f[1]))
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("%s: %s is found, and fail2ban does not find it", jail, g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Logf("%s: %s is not found", jail, w)
			lacking++
		}
	}
	return lacking
}

// checkNotes checks that each jail with missing findings has a note about it, except for single lines without a time, which
// are bad lines.
func checkNotes(t *testing.T, r *Result) {
	t.Helper()
	for jail, d := range differences {
		if d.why == "a line without a time" {
			continue
		}
		if !slices.ContainsFunc(r.Notes, func(n Note) bool {
			return strings.Contains(n.Text, "["+jail+"]: ") && (strings.Contains(n.Text, "left out") || strings.Contains(n.Text, "connection"))
		}) {
			t.Errorf("%s: no note about addresses that are not found", jail)
		}
	}
}
