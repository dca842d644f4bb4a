package server

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// TestServersShareCounters adds on two servers, by hand and by events: both have the sum and the same keys at
// the top, and so has a third that starts later, and that has one of the counters only after a
// reload.
func TestServersShareCounters(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	const rules = "version: 1\ncounters:\n  paths: {key: path, spans: [1m, 1h]}\n"
	start := func() *node {
		t.Helper()
		n := newNode(t, storeOf(redis))
		n.wantReady(200) // else other rules cannot be put in force
		n.write(rules)
		must.Do(t, n.Reload())
		n.wantReady(200)
		return n
	}
	a, b := start(), start()
	for _, n := range []*node{a, b} {
		eventually(t, "a server has the counts of all", func() bool { return n.state().Counters })
	}
	if got := a.resp("ADD pages /a 5", "ADD pages /b 2", "SUM pages /a", "CHECK path /x", "CHECK path /x"); !strings.Contains(got, "+OK\r\n:5\r\n") {
		t.Fatalf("a server does not count by itself: %q", got)
	}
	eventually(t, "the other server has the counter", func() bool { return !strings.HasPrefix(b.resp("SUM pages /a"), "-") })
	b.resp("ADD pages /b 4", "CHECK path /x", "CHECK path /y")
	want := func(n *node) {
		t.Helper()
		for _, x := range []struct{ line, answer string }{
			{"SUM pages /a", ":5\r\n"},
			{"TOP pages 10", "*4\r\n$2\r\n/b\r\n:6\r\n$2\r\n/a\r\n:5\r\n"},
			{"TOP paths 10 SPAN 1m", "*4\r\n$2\r\n/x\r\n:3\r\n$2\r\n/y\r\n:1\r\n"},
		} {
			eventually(t, x.line, func() bool { return strings.HasPrefix(n.resp(x.line), x.answer) })
		}
		if _, text := got(t, n.url+"/v1/counters/pages/sum?key=/b&span=1h"); !strings.HasPrefix(text, `{"lo":6,"hi":6,`) {
			t.Errorf("the sum over HTTP: %s", text)
		}
		_, text := got(t, n.url+"/metrics")
		for _, line := range []string{"lately_store_counters_shared 1", "lately_store_counters_unshared_total 0", "lately_store_counters_unread_total 0", "lately_table_keys 4"} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("metrics lack %s", line)
			}
		}
	}
	want(a)
	want(b)
	want(start())
}
