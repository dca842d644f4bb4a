//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/journaltest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// hitsToBan is after how many hits the next one begins a ban.
const hitsToBan = 40

var scheduleRules = fmt.Sprintf(`version: 1
counters:
  requests: {key: client, spans: [24h]}
bans:
  - {name: flood, key: client, after: %d hits in 20h, for: 24h}
`, hitsToBan)

// A followSchedule is a random history of a server that follows a file and the journal: both are written to, the file is
// rotated, journalctl and the server are killed, and bans are ended by hand.
type followSchedule struct {
	t       *testing.T
	rnd     *rand.Rand
	dir     string
	log     *rotatedLog
	journal *journaltest.Journal
	server  *serving
	args    []string

	hits  map[string]int // events of each client, since its ban was ended by hand
	marks int
	past  []string
}

func newFollowSchedule(t *testing.T, rnd *rand.Rand) *followSchedule {
	s := &followSchedule{t: t, rnd: rnd, dir: t.TempDir(), journal: journaltest.New(t), hits: map[string]int{}}
	s.log = &rotatedLog{t: t, rnd: rnd, path: filepath.Join(s.dir, "access.log"), counts: map[string]int{}}
	appendTo(t, filepath.Join(s.dir, "rules.yaml"), scheduleRules)
	every := []string{"1s", "1h"}[rnd.IntN(2)] // with 1h, lines are judged again from the first on
	s.args = []string{
		"--follow", s.log.path + "=clf", "--follow", "journal:sshd", "--rules", filepath.Join(s.dir, "rules.yaml"), "--data", s.data(), "--snapshot-every", every,
	}
	s.log.write(0) // the file exists
	s.note("snapshots every %s", every)
	s.server = serve(t, s.args...)
	s.caughtUp() // files that were rotated before the first snapshot are not read
	return s
}

func (s *followSchedule) data() string { return filepath.Join(s.dir, "data") }

func (s *followSchedule) note(format string, args ...any) {
	s.past = append(s.past, fmt.Sprintf(format, args...))
}

// hit writes n events of a client, in the file or the journal: always in the same one, so that their order is known.
func (s *followSchedule) hit(client string, n int) {
	s.note("%d hits of %s", n, client)
	s.hits[client] += n
	if client[len(client)-1]%2 == 0 {
		s.log.write(n, client)
		return
	}
	for range n {
		s.log.counts[client]++
		s.journal.Add(time.Now(), "sshd", "Failed password for root from "+client+" port 4711 ssh2")
	}
}

// caughtUp waits until the server has judged all that was written.
func (s *followSchedule) caughtUp() {
	s.t.Helper()
	s.marks++
	inFile, inJournal := fmt.Sprintf("198.51.100.%d", s.marks), fmt.Sprintf("203.0.113.%d", s.marks)
	s.log.write(1, inFile)
	s.log.counts[inJournal]++
	s.journal.Add(time.Now(), "sshd", "Failed password for root from "+inJournal+" port 4711 ssh2")
	c := s.server.dial()
	if !eventually(func() bool {
		return c.say("SUM", "requests", inFile) == "1" && c.say("SUM", "requests", inJournal) == "1"
	}) {
		s.t.Fatalf("what was written is not read, after %s\n%s", strings.Join(s.past, "; "), s.server.log.String())
	}
}

// wrong returns what the server has not as it must be: the counts, and the bans.
func (s *followSchedule) wrong() (all []string) {
	s.t.Helper()
	s.caughtUp()
	c := s.server.dial()
	for client, want := range s.log.counts {
		if got := c.say("SUM", "requests", client); got != strconv.Itoa(want) {
			all = append(all, fmt.Sprintf("%s has %s events, want %d", client, got, want))
		}
	}
	var bans, want []string
	var list api.BanPage
	must.Do(s.t, json.Unmarshal(get(s.t, s.server.http+"/v1/bans"), &list))
	for _, b := range list.Bans {
		bans = append(bans, b.Values()...)
	}
	for client, n := range s.hits {
		if n > hitsToBan {
			want = append(want, client)
		}
	}
	slices.Sort(bans)
	slices.Sort(want)
	if !slices.Equal(bans, want) {
		all = append(all, fmt.Sprintf("banned are %q, want %q", bans, want))
	}
	return all
}

// unban ends the ban of a client.
func (s *followSchedule) unban(client string) {
	s.t.Helper()
	s.caughtUp()
	s.note("unban of %s", client)
	if got := s.server.dial().say("UNBAN", "flood", client); got != "1" {
		s.t.Fatalf("%s bans are ended, want 1, after %s", got, strings.Join(s.past, "; "))
	}
	s.hits[client] = 0
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // later lines have another time, in seconds
}

// crash kills the server, and starts it again after change.
func (s *followSchedule) crash(change func()) {
	s.note("crash")
	s.server.kill()
	change()
	s.server = serve(s.t, s.args...)
}

// step does one thing.
func (s *followSchedule) step() {
	client := fmt.Sprintf("192.0.2.%d", s.rnd.IntN(8))
	switch s.rnd.IntN(8) {
	case 0, 1:
		s.hit(client, s.rnd.IntN(hitsToBan))
	case 2:
		s.note("rotation")
		s.log.rotate()
		s.log.write(1, "192.0.2.200")
	case 3:
		s.note("journalctl is killed")
		s.journal.Kill()
	case 4:
		s.crash(func() {})
	case 5:
		s.crash(func() {
			s.hit(client, s.rnd.IntN(10))
			s.log.rotate()
			s.log.write(1, "192.0.2.200")
		})
	case 6:
		if n := s.hits[client]; n <= hitsToBan {
			s.hit(client, hitsToBan+1-n)
		}
		s.unban(client)
		if s.rnd.IntN(2) == 0 {
			s.crash(func() {})
		}
	case 7:
		s.note("a snapshot, perhaps")
		time.Sleep(1100 * time.Millisecond)
	}
}

// TestServeFollowSchedules runs random schedules of crashes, unbans, rotations and ends of journalctl: no ban is back, and no
// line is lost or counted twice.
func TestServeFollowSchedules(t *testing.T) {
	schedules, steps := 2, 10
	if !testing.Short() {
		schedules, steps = 10, 20
	}
	if os.Getenv("LATELY_LONG") != "" {
		schedules, steps = 50, 40
	}
	rnd := randtest.New(t)
	for range schedules {
		s := newFollowSchedule(t, rnd)
		for n := range steps {
			s.step()
			if n < steps-1 && rnd.IntN(3) > 0 {
				continue
			}
			if wrong := s.wrong(); wrong != nil {
				t.Fatalf("%s\nafter %s\n%s", strings.Join(wrong, "\n"), strings.Join(s.past, "; "), s.server.log.String())
			}
		}
		s.server.kill()
	}
}

// TestServeFollowScheduleControls has servers that are wrong: each is found.
func TestServeFollowScheduleControls(t *testing.T) {
	rnd := randtest.New(t)
	s := newFollowSchedule(t, rnd)
	s.args = append(s.args, "--snapshot-every", "1h")
	s.crash(func() {})
	const client, other = "192.0.2.1", "192.0.2.2"
	s.hit(client, hitsToBan+1)
	s.hit(other, 5)
	if wrong := s.wrong(); wrong != nil {
		t.Fatalf("before the control: %q", wrong)
	}
	found := func(what, want string) {
		t.Helper()
		if wrong := strings.Join(s.wrong(), "\n"); !strings.Contains(wrong, want) {
			t.Errorf("%s: found is %q, want %q", what, wrong, want)
		}
	}

	// The ban journal is lost after an unban.
	before := filepath.Join(s.dir, "before")
	must.Do(t, os.CopyFS(before, os.DirFS(s.data())))
	s.unban(client)
	s.crash(func() {
		s.log.must(os.RemoveAll(s.data()))
		s.log.must(os.Rename(before, s.data()))
	})
	found("a journal without the unban", fmt.Sprintf("banned are [%q], want []", client))
	s.server.dial().say("UNBAN", "flood", client)

	s.log.write(1, other)
	s.log.counts[other]--
	found("a line that is counted twice", other+" has 6 events, want 5")
	s.log.counts[other] += 2
	found("a line that is lost", other+" has 6 events, want 7")
}
