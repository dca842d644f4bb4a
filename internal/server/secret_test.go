package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// TestSecretIsKept starts a server again in its data directory: it has the same secret, in a file that only the owner
// can read. A damaged one is replaced, and the log has the reason.
func TestSecretIsKept(t *testing.T) {
	c := Config{Data: t.TempDir(), RulesPoll: -1, RESP: Off}
	restart := func() (secret.Value, string) {
		log := new(safeBuffer)
		s := must.Get(New(c, "test", slog.New(slog.NewTextHandler(log, nil))))(t)
		defer s.close()
		return s.engine.Secret().Value(), log.String()
	}
	first, _ := restart()
	if again, log := restart(); again != first || strings.Contains(log, "secret") {
		t.Errorf("the secret is another after a restart, or the log has it: %s", log)
	}
	path := filepath.Join(c.Data, "secret")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || fileperm.Strangers(info) != 0 {
		t.Errorf("%v, %v", info, err)
	}
	for _, damage := range []string{"", "0", first.Text()[2:], strings.Repeat("0", 1000), strings.ToUpper(first.Text()[:1]) + "?"} {
		must.Do(t, os.WriteFile(path, []byte(damage), 0o600))
		fresh, log := restart()
		if fresh == first || !strings.Contains(log, "the secret in the data directory is damaged") {
			t.Errorf("%q: the secret is %v as before; the log is %s", damage, fresh == first, log)
		}
		if again, _ := restart(); again != fresh {
			t.Errorf("%q: the new secret is not kept", damage)
		}
	}
	one := must.Get(New(Config{RulesPoll: -1}, "test", nil))(t)
	defer one.close()
	if v := one.engine.Secret().Value(); v == first || v == (secret.Value{}) {
		t.Error("a server without a data directory made no secret")
	}
}

func secretOf(n *node) secret.Value { return n.engine.Secret().Value() }

// TestServersShareSecret starts servers on one store, at the same moment, later, and with a secret of their own.
func TestServersShareSecret(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	dir := t.TempDir()
	mine := secret.New().Value()
	must.Do(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(mine.Text()), 0o600))
	var servers [4]*Server
	var starting sync.WaitGroup
	for i := range servers {
		starting.Go(func() {
			c := Config{RESP: Off, HTTP: "127.0.0.1:0", RulesPoll: -1, Store: storeOf(redis)}
			if i == 0 {
				c.Data = dir
			}
			var err error
			if servers[i], err = New(c, "test", nil); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		return
	}
	shared := servers[0].engine.Secret().Value()
	for i, s := range servers {
		defer s.close()
		if s.engine.Secret().Value() != shared {
			t.Errorf("server %d has another secret when its New returns", i)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || strings.TrimSpace(string(text)) != shared.Text() {
		t.Errorf("the data directory has another secret: %v", err)
	}
	if held := redis.Do(t, "GET", "lately:{nodes}:secret"); held != shared.Text() {
		t.Error("the store has another secret")
	}
	redis.Do(t, "FLUSHALL")
	late := newNode(t, storeOf(redis))
	eventually(t, "after the loss of all keys, all servers have one secret", func() bool {
		for _, s := range servers {
			s.store.beat(t.Context(), s.engine.Rules())
			if s.engine.Secret().Value() != secretOf(late) {
				return false
			}
		}
		return true
	})
	redis.Do(t, "SET", "lately:{nodes}:secret", "damaged")
	held := secretOf(late)
	eventually(t, "the log says that the secret is damaged", func() bool {
		return strings.Contains(late.log.String(), "the secret in the store is damaged")
	})
	if secretOf(late) != held {
		t.Error("a damaged secret of the store replaced that of the server")
	}
}

// TestSecretWithoutStore starts two servers while their store is unavailable: when it returns, both have one secret; a
// server that had the secret of the store in its data directory used it all the time.
func TestSecretWithoutStore(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	dir := t.TempDir()
	first := must.Get(New(Config{RESP: Off, HTTP: "127.0.0.1:0", RulesPoll: -1, Store: storeOf(redis), Data: dir}, "test", nil))(t)
	known := first.engine.Secret().Value()
	first.close()
	redis.Kill()
	away, knows := newNode(t, storeOf(redis)), newNode(t, storeOf(redis), func(c *Config) {
		c.Data = t.TempDir()
		must.Do(t, os.CopyFS(c.Data, os.DirFS(dir)))
	})
	if secretOf(knows) != known {
		t.Error("the secret of the data directory is not used while the store is away")
	}
	temporary := secretOf(away)
	if temporary == known {
		t.Error("a server that never reached the store has its secret")
	}
	must.Do(t, redis.Run())
	eventually(t, "both have one secret", func() bool { return secretOf(away) == secretOf(knows) })
	if s := secretOf(away); s != known && s != temporary {
		t.Error("both have a third secret")
	}
}
