package latelyredis_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// uncheckedVariable makes TestDamagedReplies use connections without a check, which crash the process.
const uncheckedVariable = "TEST_UNCHECKED_REPLIES"

// checked makes a client check replies.
func checked(o *rueidis.ClientOption) {
	dial := o.DialCtxFn
	if dial == nil {
		o.DialCtxFn = latelyredis.Dial
		return
	}
	o.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, dialer, config)
		if err != nil {
			return nil, err
		}
		return latelyredis.CheckedConn(conn, nil), nil
	}
}

// damaged makes a client get replies from d, checked unless the control is wanted.
func damaged(d *damager) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) {
		dial := o.DialCtxFn
		if dial == nil {
			dial = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", address)
			}
		}
		o.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, address, dialer, config)
			if err != nil {
				return nil, err
			}
			return d.over(conn), nil
		}
		if os.Getenv(uncheckedVariable) == "" {
			checked(o)
		}
		// A connection that waits for the rest of a reply is soon found dead.
		o.Dialer.KeepAlive, o.ConnWriteTimeout = 20*time.Millisecond, 100*time.Millisecond
		o.Sentinel.Dialer, o.PipelineMultiplex = o.Dialer, -1
	}
}

// TestDamagedReplies has stores decide while one reply in fifty is damaged: the process goes on, with bounded memory, no
// limit is exceeded by more than the rule's OnStoreFailure allows, and afterwards the server decides as before. The
// long form has 10,000 damaged replies.
func TestDamagedReplies(t *testing.T) {
	const limit, workers = 100, 4
	want := 300
	if longForm() {
		want = 10_000
	}
	s, d := own(t), newDamager(randtest.Seed(t))
	peak := watchMemory(t)
	for _, tt := range []struct {
		on   ratelimit.FailPolicy
		most int // for a key: of the server, and of the memory of each worker
	}{{ratelimit.FailClosed, limit}, {ratelimit.FailLocal, limit + workers*limit}} {
		rules, config := set(t, ratelimit.Rule{
			Name: "limit", Key: match.MustKey("path"), Algorithm: ratelimit.Exact,
			Limits: []ratelimit.Limit{{N: limit, Span: time.Hour}}, OnStoreFailure: tt.on,
		}), prefixed()
		d.damageOneIn(0)
		limiters := make([]*ratelimit.Limiter, workers)
		for i := range limiters {
			limiters[i] = defaultLimiter(t, rules, quiet(t, s.Client(t, damaged(d)), rules, config))
		}
		d.damageOneIn(50)
		done, unseen := d.counts()
		over, asked, answered := d.flood(limiters, done+want/2, 3*limit, tt.most)
		_, now := d.counts()
		if over > now-unseen {
			t.Errorf("%v: %d allowed above the bound, but only %d replies may have been damaged within", tt.on, over, now-unseen)
		}
		t.Logf("%v: %v; the server decided %d of %d, %d allowed above the bound", tt.on, d, answered, asked, over)
		d.damageOneIn(0)
		for _, l := range limiters {
			eventually(t, "the server decides again", func() bool { return takePath(l, "/again").Err == nil })
		}
	}
	if n := peak(); n > 512<<20 {
		t.Errorf("%d MiB in use", n>>20)
	}
}

// flood has limiters decide until a number of replies were damaged, about the next key after each decisions. It returns how
// many were allowed above most for each key, how many were requested, and how many the server decided.
func (d *damager) flood(limiters []*ratelimit.Limiter, until, each, most int) (over int, asked, answered int64) {
	var all sync.WaitGroup
	var mu sync.Mutex
	allowed := make(map[int64]int)
	var askedNow, answeredNow atomic.Int64
	for _, l := range limiters {
		all.Go(func() {
			for done := 0; done < until; done, _ = d.counts() {
				key := askedNow.Add(1) / int64(each)
				x := takePath(l, fmt.Sprint(key))
				if x.Err == nil {
					answeredNow.Add(1)
				}
				if x.Allowed {
					mu.Lock()
					allowed[key]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for _, n := range allowed {
		over += max(0, n-most)
	}
	return over, askedNow.Load(), answeredNow.Load()
}

func takePath(l *ratelimit.Limiter, path string) ratelimit.Decision {
	var e match.Event
	e.SetString(match.Path, path)
	return l.Take(&e)
}

// watchMemory returns a function that returns the largest growth of the memory in use since then.
func watchMemory(t testing.TB) (peak func() uint64) {
	debug.FreeOSMemory() // of earlier tests
	var most atomic.Uint64
	ends := make(chan struct{})
	var watching sync.WaitGroup
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	look := func() {
		metrics.Read(sample)
		most.Store(max(most.Load(), sample[0].Value.Uint64()-sample[1].Value.Uint64()))
	}
	look()
	base := most.Load()
	watching.Go(func() {
		for {
			look()
			select {
			case <-ends:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { close(ends); watching.Wait() })
	return func() uint64 { return most.Load() - min(base, most.Load()) }
}

// TestUncheckedReplies is the control of TestDamagedReplies: without the check, the process ends.
func TestUncheckedReplies(t *testing.T) {
	redistest.Needs(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestDamagedReplies$", "-test.count=1")
	cmd.Env = append(os.Environ(), uncheckedVariable+"=1", "GOMEMLIMIT=1GiB", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the server that it has started
	if err == nil || !strings.Contains(string(out), "panic: ") && !strings.Contains(string(out), "fatal error: ") || !strings.Contains(string(out), "rueidis.") {
		t.Errorf("without the check: %v, want a panic of rueidis:\n%.2000s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			t.Log(line)
		}
	}
}

// TestDamagedTopology damages the replies of all nodes of a cluster, and of Sentinel and its servers: clients read these by
// themselves, in goroutines of their own.
func TestDamagedTopology(t *testing.T) {
	t.Parallel()
	rules := set(t, limited("limit", match.MustKey("path"), ratelimit.Sliding, 100))
	run := func(t *testing.T, client func(testing.TB, ...func(*rueidis.ClientOption)) rueidis.Client, change func(*rueidis.ClientOption)) {
		t.Parallel()
		d := newDamager(randtest.Seed(t))
		l := defaultLimiter(t, rules, quiet(t, client(t, change, damaged(d)), rules, prefixed()))
		want := 100
		if longForm() {
			want = 2000
		}
		d.damageOneIn(5)
		d.flood([]*ratelimit.Limiter{l}, want, 100, 0)
		t.Log(d)
		d.damageOneIn(0)
		eventually(t, "the server decides again", func() bool { return takePath(l, "/again").Err == nil })
	}
	t.Run("Cluster", func(t *testing.T) {
		run(t, redistest.NewCluster(t, 3).Client, func(o *rueidis.ClientOption) { o.ClusterOption.ShardsRefreshInterval = 20 * time.Millisecond })
	})
	t.Run("Sentinel", func(t *testing.T) {
		run(t, redistest.NewWatched(t).Client, func(o *rueidis.ClientOption) { o.Sentinel.TopologyRefreshInterval = 20 * time.Millisecond })
	})
}
