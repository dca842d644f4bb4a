package server

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// TestStoreInCluster shares limits in three nodes, one of them in the URL: a pipeline whose
// keys are in slots of all of them is answered in order.
func TestStoreInCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3)
	store := "redis://" + c.Nodes[1].Addr + slowStore
	a, b := newNode(t, store), newNode(t, store)
	a.wantReady(200)
	b.wantReady(200)
	var lines []string
	owners := map[int]bool{}
	for i := range 20 {
		key := fmt.Sprintf("192.0.2.%d", i)
		for range i%5 + 1 {
			lines = append(lines, "TAKE shared "+key)
		}
		owner, _ := c.Owner(t, "{client="+key+"}")
		owners[owner] = true
	}
	if len(owners) != 3 {
		t.Fatalf("the keys are on %d nodes, want 3", len(owners))
	}
	answers := strings.Split(a.resp(lines...), "*7\r\n")[1:]
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d commands", len(answers), len(lines))
	}
	n := 0
	for i := range 20 {
		for used := range i%5 + 1 {
			want := fmt.Sprintf(":1\r\n:4\r\n:%d\r\n", 3-used)
			if used == 4 {
				want = ":0\r\n:4\r\n:0\r\n"
			}
			if !strings.HasPrefix(answers[n], want) {
				t.Errorf("answer %d, to %s: %q, want %q and more", n, lines[n], answers[n], want)
			}
			n++
		}
	}
	if b.take("shared", "192.0.2.4") || b.take("shared", "192.0.2.3") || !b.take("shared", "192.0.2.2") {
		t.Error("the other server has other counts")
	}
	eventually(t, "two nodes with the same rules", func() bool {
		x, y := a.state(), b.state()
		return x.Nodes == 2 && y.Nodes == 2 && x.OtherRules+y.OtherRules == 0 && x.Failures == 0
	})
}

// TestStoreWithoutANode ends the cluster node with the key of the servers' beats, and then the one with the list of bans:
// while another answers, the servers are ready, and decide for the keys on it.
func TestStoreWithoutANode(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3)
	ofNodes, _ := c.Owner(t, "{nodes}")
	ofBans, _ := c.Owner(t, "{bans}")
	left := 0
	for left == ofNodes || left == ofBans {
		left++
	}
	n := newNode(t, "redis://"+c.Nodes[left].Addr+slowStore)
	n.wantReady(200)
	key := ""
	for i := 0; key == ""; i++ {
		name := fmt.Sprint("user", i)
		if owner, _ := c.Owner(t, "{user="+name+"}"); owner == left {
			key = name
		}
	}
	for _, ended := range []int{ofNodes, ofBans} {
		c.Nodes[ended].Kill()
		was := len(n.log.String())
		eventually(t, "the state says what does not answer", func() bool {
			s := n.state()
			return s.Error != "" && (ended != ofBans || s.SyncAge > 8000)
		})
		if code, text := got(t, n.url+"/readyz"); code != 200 {
			t.Errorf("/readyz is %d %s while two of three nodes, or one, answer", code, text)
		}
		if text := n.log.String()[was:]; strings.Contains(text, "the store of limits is down") {
			t.Errorf("the log has a line that the store is down:\n%s", text)
		}
		if !n.take("closed", key) {
			t.Error("the node that is left does not decide")
		}
	}
	c.Nodes[left].Kill()
	n.wantReady(503)
}

// TestStoreFailsOver has Sentinel promote the replica of the store: the server finds the new primary, which has the counts.
func TestStoreFailsOver(t *testing.T) {
	t.Parallel()
	w := redistest.NewWatched(t)
	n := newNode(t, w.URL()+"&"+slowStore[1:])
	n.wantReady(200)
	for range 2 {
		if !n.take("closed", "ada") {
			t.Fatal("one of the first two of four is refused")
		}
	}
	w.Cut(t)
	w.Fail(t)
	eventually(t, "the store is up again", func() bool {
		_, text := posted(n.t, n.url+"/v1/peek", `{"rule":"closed","key":"ada"}`)
		return strings.Contains(text, `"allowed":true`)
	})
	n.wantReady(200)
	for i, want := range []bool{true, true, false} {
		if got := n.take("closed", "ada"); got != want {
			t.Errorf("decision %d after the failover: allowed %v, want %v: two of four were counted before", i, got, want)
		}
	}
}

// TestStoreWithStoppedSentinel stops a Sentinel, like a machine that hangs, during a request for the primary: the
// connection is given up, so that another Sentinel can be used and the client ends.
func TestStoreWithStoppedSentinel(t *testing.T) {
	t.Parallel()
	w := redistest.NewWatched(t)
	o := must.Get(storeOptions(w.URL()))(t)
	o.Sentinel.TopologyRefreshInterval = 10 * time.Millisecond
	client := must.Get(rueidis.NewClient(o))(t)
	sentinel := w.Sentinel.Process()
	must.Do(t, sentinel.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = sentinel.Signal(syscall.SIGCONT) })
	time.Sleep(200 * time.Millisecond) // so that it is used
	closed := make(chan struct{})
	go func() {
		client.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the client waits for a Sentinel that is stopped")
	}
}
