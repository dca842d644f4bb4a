package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// personRules count and ban the users in TestPersonIsDeleted.
const personRules = `version: 1
limits:
  - {name: per-user, key: user, limit: 3 per 1h, ban: {after: 2 refusals in 1h, for: 1h, factor: 2, remember: 30d}}
  - {name: per-path, key: [path, user], limit: 100 per 1h}
  - {name: bucket, key: user, limit: 100 per 1h burst 5, algorithm: gcra, mode: shadow}
`

// After the steps in docs/privacy.md, a server that has judged and banned a person has no data about them in its data
// directory, in Redis, or in its answers after a restart. The control is a person whose data was not deleted.
func TestPersonIsDeleted(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("SKIP: there is no redis-cli here")
	}
	t.Run("memory", func(t *testing.T) { deletePerson(t, nil) })
	t.Run("redis", func(t *testing.T) { deletePerson(t, redistest.Own(t)) })
}

func deletePerson(t *testing.T, redis *redistest.Server) {
	const gone, stays = "ada-of-privacy", "bob-of-privacy"
	data, rules := filepath.Join(t.TempDir(), "data"), writeRules(t, personRules)
	flags := []string{"--rules", rules, "--data", data, "--snapshot-every", "1h"}
	if redis != nil {
		flags = append(flags, "--store", "unix://"+redis.Socket()+"?dial_timeout=1m&write_timeout=1m", "--store-timeout", "10s")
	}
	s := serve(t, flags...)
	do := func(command string) string {
		host, port, _ := strings.Cut(s.resp, ":")
		out, err := exec.Command("redis-cli", append([]string{"-h", host, "-p", port}, strings.Split(command, " ")...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	for _, user := range []string{gone, stays} {
		for range 8 {
			do("CHECK user " + user + " path /a")
		}
		if out := do("BANS"); !strings.Contains(out, user) {
			t.Fatalf("%s is not banned: %s", user, out)
		}
	}
	do("RESET per-user " + gone)
	do("RESET per-path /a\t" + gone)
	do("RESET bucket " + gone)
	do("UNBAN per-user " + gone)
	if err := s.end(); err != nil { // it writes a last snapshot
		t.Error(err)
	}
	if redis != nil { // what docs/recipes/privacy.md has for Redis
		if !dumped(t, redis, gone) {
			t.Error("Redis has nothing of the person: the commands for it are not needed")
		}
		redis.Do(t, "DEL", "lately:{user="+gone+"}:per-user", "lately:{path=/a,user="+gone+"}:per-path", "lately:{user="+gone+"}:bucket")
		redis.Do(t, "XTRIM", "lately:{bans}:changes", "MAXLEN", "0")
		for i := range 16 { // which otherwise expire within a minute
			redis.Do(t, "DEL", fmt.Sprintf("lately:{bans}:ended:%d", i))
		}
	}
	stored := func(user string) bool { return storedIn(t, data, user) || redis != nil && dumped(t, redis, user) }
	if stored(gone) {
		t.Error("the person is still in the data directory or in Redis")
	}
	if !stored(stays) {
		t.Error("the control is not in the data directory or in Redis")
	}
	s = serve(t, flags...)
	for path, wantControl := range map[string]bool{"/v1/bans": true, "/v1/refused": false} {
		out, err := exec.Command("curl", "-s", s.http+path).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte(gone)) || bytes.Contains(out, []byte(stays)) != wantControl {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
	if out := do("TAKE per-user " + gone); !strings.HasPrefix(out, "1\n3\n2\n") {
		t.Errorf("the person has not the whole limit: %s", out)
	}
}

// storedIn reports whether a file in dir has text.
func storedIn(t *testing.T, dir, text string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has %q, %v", dir, found, err)
	}
	for _, path := range found {
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(text)) { // a journal is replaced meanwhile
			return true
		}
	}
	return false
}

// dumped reports whether the keys or values of Redis have text.
func dumped(t *testing.T, redis *redistest.Server, text string) bool {
	t.Helper()
	redis.Do(t, "CONFIG", "SET", "rdbcompression", "no")
	redis.Do(t, "SAVE")
	content := must.Get(os.ReadFile(filepath.Join(redis.Dir(), "dump.rdb")))(t)
	return bytes.Contains(content, []byte(text))
}
