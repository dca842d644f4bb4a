package cli

import (
	"strings"
	"syscall"
	"testing"
)

// The warnings of `lately validate` are in the log, at the start and at each reload.
func TestServeWarnsOfRules(t *testing.T) {
	path := writeRules(t, `version: 1
limits:
  - {name: login, key: client, when: {method: post}, limit: 3 per 1h}
`)
	s := serve(t, "--rules", path, "--rules-poll", "never")
	const warning = `rules file: method: \"post\": methods are compared exactly; did you mean \"POST\"?`
	times := func() int { return strings.Count(s.log.String(), warning) }
	if times() != 1 || !strings.Contains(s.log.String(), "line=3 column=") {
		t.Errorf("at the start:\n%s", s.log.String())
	}
	_ = s.cmd.Process.Signal(syscall.SIGHUP)
	if !eventually(func() bool { return times() == 2 }) {
		t.Errorf("after a reload:\n%s", s.log)
	}
}
