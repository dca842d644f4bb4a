package replay_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/replay"
)

// A condition on a path holds for the lines that nginx and Apache write about
// requests for which it holds live.
func TestPathSpellingsInLogs(t *testing.T) {
	var log strings.Builder
	targets := []string{
		"/login", "/login?x", "/login#x", `/x\x5C..\x5Clogin`, `/x\\..\\login`, "//h/login", "/%6cogin", "/x%2Fy/../login",
		"/x/%2e%2e/login", "http://h/login",
	}
	for _, target := range append(targets, "/other", "/login2", `/x\x5C..\x5Clogin2`) {
		log.WriteString(`192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "POST ` + target + ` HTTP/1.1" 200 1` + "\n")
	}
	r := mustRun(t, replay.Config{
		Files:  []string{writeFile(t, "access.log", []byte(log.String()))},
		Format: "clf",
		Rules:  mustRules(t, "version: 1\nlimits: [{name: login, key: client, limit: 5 per 10m, when: {method: POST, path: /login}}]"),
	})
	if refused := r.Rules[0].Refused; refused == nil || *refused != int64(len(targets)-5) {
		t.Errorf("the rule refused %v; want %d of its %d events", refused, len(targets)-5, len(targets))
	}
}
