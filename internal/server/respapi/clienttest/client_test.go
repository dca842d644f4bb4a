package clienttest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

const (
	rulesText = `version: 1
limits:
  - {name: login, key: user, limit: 3 per 10m}
  - {name: queue, key: path, limit: 1 per 1m burst 3, algorithm: leaky-bucket}
  - {name: uploads, key: path, limit: 1 at once for 1h, algorithm: in-flight}
hot:
  - {name: product, key: path, threshold: 20 per 2s, hold: 60s}
`
	token = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// serve starts a server, with a token or without.
func serve(t *testing.T, withToken bool) (addr string, stop func()) {
	t.Helper()
	file := must.Get(rules.Parse("rules.yaml", []byte(rulesText)))(t)
	e := must.Get(engine.New(engine.Config{Rules: file}))(t)
	t.Cleanup(e.Close)
	var tokens *access.Tokens
	if withToken {
		path := filepath.Join(t.TempDir(), "tokens")
		must.Do(t, os.WriteFile(path, []byte("admin "+token+"\n"), 0o600))
		tokens = must.Get(access.Load(path))(t)
	}
	s := respapi.New(listen.Config{Engine: e, Tokens: func() *access.Tokens { return tokens }})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// decision is what the first and the fourth of five TAKE answer.
func checkDecisions(t *testing.T, take func(i int) ([]any, error)) {
	t.Helper()
	for i := range 4 {
		got := must.Get(take(i))(t)
		allowed, remaining := int64(1), int64(2-i)
		if i == 3 {
			allowed, remaining = 0, 0
		}
		if len(got) != 7 || got[0] != allowed || got[1] != int64(3) || got[2] != remaining || got[5] != "login" {
			t.Errorf("TAKE %d answers %v", i, got)
		}
	}
}

func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		for _, password := range []string{"", token} {
			t.Run(fmt.Sprintf("version %d token %v", protocol, password != ""), func(t *testing.T) {
				addr, _ := serve(t, password != "")
				c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol, Password: password, ClientName: "test"})
				defer c.Close()
				ctx := t.Context()
				must.Do(t, c.Ping(ctx).Err())
				checkDecisions(t, func(int) ([]any, error) { return c.Do(ctx, "TAKE", "login", "ada").Slice() })
				if err := c.Do(ctx, "TAKE", "nosuch", "ada").Err(); err == nil || !strings.HasPrefix(err.Error(), "NORULE ") {
					t.Errorf("a rule that is not there: %v", err)
				}
				cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 1000 {
						p.Do(ctx, "ADD", "pages", "/a")
					}
					p.Do(ctx, "SUM", "pages", "/a")
					return nil
				})
				if err != nil || cmds[1000].(*redis.Cmd).Val() != int64(1000) {
					t.Errorf("a pipeline: %v, %v", cmds[1000], err)
				}
				throttled, err := c.Do(ctx, "CL.THROTTLE", "user123", 15, 30, 60, 1).Int64Slice()
				if err != nil || !slices.Equal(throttled, []int64{0, 16, 15, -1, 2}) {
					t.Errorf("CL.THROTTLE answers %v, %v", throttled, err)
				}
				for i, want := range []int{7, 8, 8} {
					d, err := c.Do(ctx, "TAKE", "queue", "ada").Slice()
					if err != nil || len(d) != want || want == 8 && (d[7].(int64) > int64(i)*60_000 || d[7].(int64) < int64(i)*60_000-30_000) {
						t.Errorf("TAKE %d of a leaky bucket answers %v, %v", i, d, err)
					}
				}
				for i, want := range []int64{1, 0, 1} {
					if d, err := c.Do(ctx, "TAKE", "uploads", "ada").Slice(); err != nil || d[0] != want {
						t.Errorf("TAKE %d of an in-flight rule answers %v, %v", i, d, err)
					}
					if n, err := c.Do(ctx, "RELEASE", "uploads", "ada").Int64(); i > 0 && (err != nil || n != 1) {
						t.Errorf("RELEASE answers %d, %v", n, err)
					} else if i == 0 { // hold a place again, for the refusal
						if err := c.Do(ctx, "TAKE", "uploads", "ada").Err(); err != nil {
							t.Error(err)
						}
					}
				}
				cmds, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Do(ctx, "TAKE", "login", "tess", "COST", 3)
					p.Do(ctx, "TAKE", "login", "tess")
					p.Del(ctx, "user123")
					return nil
				})
				if err != nil {
					t.Fatalf("a transaction: %v", err)
				}
				first, _ := cmds[0].(*redis.Cmd).Slice()
				second, _ := cmds[1].(*redis.Cmd).Slice()
				if first[0] != int64(1) || second[0] != int64(0) || cmds[2].(*redis.IntCmd).Val() != 1 {
					t.Errorf("a transaction answers %v, %v, %v", first, second, cmds[2])
				}
				if _, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Do(ctx, "TAKE", "login", "tom")
					p.Do(ctx, "NOSUCH")
					return nil
				}); err == nil {
					t.Error("a transaction with an unknown command was executed")
				}
				if got, err := c.Do(ctx, "PEEK", "login", "tom").Slice(); err != nil || got[2] != int64(2) {
					t.Errorf("an aborted transaction charged: %v, %v", got, err)
				}
				if err := c.Watch(ctx, func(*redis.Tx) error { return nil }, "login"); err == nil || !strings.Contains(err.Error(), "keys cannot be watched") {
					t.Errorf("WATCH: %v", err)
				}
				if name, err := c.ClientGetName(ctx).Result(); err != nil || name != "test" {
					t.Errorf("CLIENT GETNAME: %q, %v", name, err)
				}
				docs, err := c.Command(ctx).Result()
				if err != nil || docs["take"] == nil || docs["take"].FirstKeyPos != 2 {
					t.Errorf("COMMAND answers %v, %v", docs, err)
				}
				sub := c.PSubscribe(ctx, "bans*")
				defer sub.Close()
				if _, err := sub.Receive(ctx); err != nil {
					t.Fatal(err)
				}
				must.Do(t, c.Do(ctx, "BAN", "login", "eve", "10m", "by hand").Err())
				m, err := sub.ReceiveMessage(ctx)
				if err != nil || m.Channel != "bans" || !strings.Contains(m.Payload, `"eve"`) {
					t.Errorf("received %v, %v", m, err)
				}
			})
		}
	}
}

func TestRueidis(t *testing.T) {
	for _, resp2 := range []bool{true, false} {
		for _, password := range []string{"", token} {
			t.Run(fmt.Sprintf("version 2 %v token %v", resp2, password != ""), func(t *testing.T) {
				addr, _ := serve(t, password != "")
				c, err := rueidis.NewClient(rueidis.ClientOption{
					InitAddress: []string{addr}, Password: password, DisableCache: true, AlwaysRESP2: resp2, ForceSingleClient: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ctx := t.Context()
				checkDecisions(t, func(int) ([]any, error) {
					got, err := c.Do(ctx, c.B().Arbitrary("TAKE").Keys("login").Args("ada").Build()).ToArray()
					var values []any
					for _, m := range got {
						v, _ := m.ToAny()
						values = append(values, v)
					}
					return values, err
				})
				var wg sync.WaitGroup
				for range 50 { // rueidis pipelines these by itself
					wg.Go(func() {
						for range 20 {
							if err := c.Do(ctx, c.B().Arbitrary("ADD").Keys("pages").Args("/a").Build()).Error(); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				n, err := c.Do(ctx, c.B().Arbitrary("SUM").Keys("pages").Args("/a").ReadOnly()).AsInt64()
				if err != nil || n != 1000 {
					t.Errorf("SUM answers %d, %v", n, err)
				}
				err = c.Dedicated(func(d rueidis.DedicatedClient) error {
					replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Arbitrary("ADD").Keys("pages").Args("/b", "2").Build(),
						d.B().Arbitrary("SUM").Keys("pages").Args("/b").Build(), d.B().Exec().Build())
					done, err := replies[3].ToArray()
					if err != nil || len(done) != 2 {
						return fmt.Errorf("EXEC answers %v, %v", done, err)
					}
					if n, err := done[1].AsInt64(); err != nil || n != 2 {
						return fmt.Errorf("SUM in a transaction answers %d, %v", n, err)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				told := make(chan rueidis.PubSubMessage, 1)
				var once sync.Once
				go c.Receive(rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
					if s.Kind == "subscribe" {
						once.Do(func() {
							go c.Do(ctx, c.B().Arbitrary("BAN").Keys("login").Args("eve", "10m").Build())
						})
					}
				}), c.B().Subscribe().Channel("bans:login").Build(), func(m rueidis.PubSubMessage) {
					select {
					case told <- m:
					default:
					}
				})
				select {
				case m := <-told:
					if m.Channel != "bans:login" || !strings.Contains(m.Message, `"eve"`) {
						t.Errorf("told %v", m)
					}
				case <-ctx.Done():
					t.Error("nothing was received")
				}
			})
		}
	}
}

// Errors of authentication have the codes that go-redis recognizes.
func TestGoRedisAuthentication(t *testing.T) {
	addr, _ := serve(t, true)
	for password, want := range map[string]string{"": "NOAUTH ", "wrong": "WRONGPASS "} {
		c := redis.NewClient(&redis.Options{Addr: addr, Password: password, MaxRetries: -1})
		if err := c.Do(t.Context(), "TAKE", "login", "ada").Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("password %q: %v", password, err)
		}
		c.Close()
	}
}

// TestReconnect has a pool go on when its connections are closed between two
// commands, as at a restart.
func TestReconnect(t *testing.T) {
	addr, stop := serve(t, false)
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	must.Do(t, c.Do(t.Context(), "TAKE", "login", "ada").Err())
	stop()
	if err := c.Do(t.Context(), "TAKE", "login", "ada").Err(); err == nil {
		t.Error("a server that has ended answers")
	}
}
