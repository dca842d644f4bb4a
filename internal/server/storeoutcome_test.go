package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

const sharedAnswers = `version: 1
limits:
  - {name: shared, key: client, when: {path: /login, status: 401}, limit: 4 per 1h}
  - {name: users, key: user, when: {status: 401}, limit: 4 per 1h}
`

// TestOutcomeAtAnotherServer reports, at one server of a store, the answer to a request that another has judged: it counts
// once, also when both receive it, in one pipeline, and while the store answers for some ids only, or for none.
func TestOutcomeAtAnotherServer(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	file := filepath.Join(t.TempDir(), "answers.yaml")
	must.Do(t, os.WriteFile(file, []byte(sharedAnswers), 0o600))
	answers := func(c *Config) { c.RulesFiles = []string{file} }
	a, b := newNode(t, storeOf(redis), answers), newNode(t, storeOf(redis), answers)
	a.wantReady(200)
	b.wantReady(200)
	const check = "CHECK client 192.0.2.1 path /login user ada OUTCOME 60000"
	id := a.reserve(check)
	b.wantAnswer("OUTCOME "+id+" status 401", "*7\r\n:1\r\n", "at the other server")
	for _, n := range []*node{a, b} {
		n.wantAnswer("OUTCOME "+id+" status 401", "*7\r\n:1\r\n", "again")
		n.wantLeft("192.0.2.1", 3, "reported three times")
	}
	other := b.reserve(check)
	if got := a.resp("OUTCOME "+other+" status 401", "OUTCOME "+other+" status 401", "OUTCOME "+id+" status 401"); strings.Count(got, "*7\r\n:1\r\n") != 3 {
		t.Errorf("in one pipeline: %q", got)
	}
	b.wantLeft("192.0.2.1", 2, "reported twice in one pipeline")
	keys := redis.Do(t, "KEYS", "lately:~*")
	if got := strings.Count(keys, "~"); got != 2 {
		t.Errorf("the keys of two ids are %q", keys)
	}
	for _, key := range strings.Fields(keys) {
		if ttl := redis.Do(t, "PTTL", strings.Trim(key, "[]")); strings.HasPrefix(ttl, "-1") {
			t.Errorf("%s does not expire", key)
		}
	}
	short := a.reserve(strings.Replace(check, "60000", "1", 1))
	time.Sleep(2 * time.Millisecond)
	b.wantAnswer("OUTCOME "+short+" status 401", "-EXPIRED id: its time was over at ", "late")

	// The store answers for the reported ids, and not for another: at another server, they are known.
	later := a.reserve(check)
	user := []string{"ACL", "SETUSER", "default", "resetkeys", "~lately:{*"}
	for key := range strings.FieldsSeq(strings.Trim(keys, "[]")) {
		user = append(user, "~"+key)
	}
	redis.Do(t, user...)
	if got := b.resp("OUTCOME "+id+" status 401", "OUTCOME "+later+" status 401"); strings.Count(got, "*7\r\n:1\r\n") != 2 {
		t.Errorf("one of two ids was found: %q", got)
	}
	b.wantLeft("192.0.2.1", 1, "a repetition, and an id about which the store does not answer")
	redis.Do(t, "ACL", "SETUSER", "default", "allkeys")
	b.wantAnswer("OUTCOME "+later+" status 401", "*7\r\n:1\r\n", "when the store answers again")
	b.wantLeft("192.0.2.1", 1, "counted while the store did not answer, and repeated")

	before := a.reserve("CHECK client 192.0.2.8 path /login user kim OUTCOME 60000")
	a.wantAnswer("OUTCOME "+before+" status 401", "*7\r\n:1\r\n", "before the store goes away")
	redis.Kill()
	eventually(t, "the store is away", func() bool { return !a.state().Up })
	left8 := a.resp("PEEK shared 192.0.2.8")
	id = a.reserve("CHECK client 192.0.2.9 path /login user eve OUTCOME 60000")
	for _, id := range []string{id, id, before} {
		a.wantAnswer("OUTCOME "+id+" status 401", "*7\r\n:1\r\n", "without a store")
	}
	if got := a.resp("PEEK shared 192.0.2.8"); wordsOf(got) != wordsOf(left8) {
		t.Errorf("repeated without a store: %q, before that %q", got, left8)
	}
	var limit, left int // of the limit, or of this server's part of it
	if _, err := fmt.Sscanf(a.resp("PEEK shared 192.0.2.9"), "*7\r\n:1\r\n:%d\r\n:%d\r\n", &limit, &left); err != nil || left != limit-2 {
		t.Errorf("reported twice without a store: %d of %d are left after the next, %v", left, limit, err)
	}
}

// wordsOf returns a decision without its times.
func wordsOf(decision string) string {
	words := strings.Fields(decision)
	return strings.Join(words[:4], " ")
}
