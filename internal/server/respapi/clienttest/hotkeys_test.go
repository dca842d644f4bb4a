package clienttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lately-go/lately/internal/test/must"
)

// The example clients in Python and Java: a key that is used often is served from
// memory, is loaded once more when its value changed, and every use is reported.

const hotKeysPython = `
import os, time
from hotkeys import HotKeys
loads = []
products = HotKeys('product', [os.environ['ADDR']], lambda key: loads.append(key) or key.upper(), 60, os.environ['PASSWORD'] or None)
uses = 0
def load_until_hot():
    global uses
    while True:
        before, uses = len(loads), uses + 1
        assert products.get('/p/1') == '/P/1'
        if len(loads) == before:
            return
        time.sleep(0.005)
load_until_hot()
before, uses = len(loads), uses + 1000
for _ in range(1000):
    products.get('/p/1')
assert len(loads) == before, 'a hot key was loaded'
products.changed('/p/1')
uses += 1
products.get('/p/1')
assert len(loads) > before, 'a changed value was not loaded'
products.close()
print(uses, uses - products.lost)
`

const hotKeysJava = `
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

public class UseHotKeys {
  public static void main(String[] args) throws Exception {
    var loads = new AtomicInteger();
    String token = args[1].isEmpty() ? null : args[1];
    var products = new HotKeys<String>("product", List.of(args[0]), token, 60_000, key -> {
      loads.incrementAndGet();
      return key.toUpperCase();
    });
    int uses = 0;
    for (int before = -1; before != loads.get(); uses++) {
      before = loads.get();
      if (!products.get("/p/2").equals("/P/2")) throw new Exception("another value");
      Thread.sleep(5);
    }
    int before = loads.get();
    for (int i = 0; i < 1000; i++, uses++) products.get("/p/2");
    if (loads.get() != before) throw new Exception("a hot key was loaded");
    products.changed("/p/2");
    products.get("/p/2");
    uses++;
    if (loads.get() == before) throw new Exception("a changed value was not loaded");
    products.close();
    System.out.println(uses + " " + (uses - products.lost.get()));
  }
}
`

func TestHotKeysPython(t *testing.T) {
	python := pythonWithRedis(t)
	for _, password := range []string{"", token} {
		addr, _ := serve(t, password != "")
		cmd := exec.CommandContext(t.Context(), python, "-c", hotKeysPython)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+examples(t), "PYTHONDONTWRITEBYTECODE=1", "ADDR="+addr, "PASSWORD="+password)
		checkReported(t, cmd, addr, password)
	}
}

func TestHotKeysJava(t *testing.T) {
	classpath := compileJava(t, "UseHotKeys", hotKeysJava)
	for _, password := range []string{"", token} {
		addr, _ := serve(t, password != "")
		checkReported(t, exec.CommandContext(t.Context(), "java", "-cp", classpath, "UseHotKeys", addr, password), addr, password)
	}
}

// examples returns the directory of the clients.
func examples(t *testing.T) string {
	t.Helper()
	dir := must.Get(filepath.Abs("../../../../examples/hotkeys"))(t)
	return dir
}

// checkReported runs a program that prints how many uses of a key it has made and how many it has reported. The server must
// have counted as many.
func checkReported(t *testing.T, cmd *exec.Cmd, addr, password string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var uses, reported int64
	if _, err := fmt.Sscan(string(out), &uses, &reported); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	c := redis.NewClient(&redis.Options{Addr: addr, Password: password})
	defer c.Close()
	stats := must.Get(c.Do(t.Context(), "HOT.STATS", "product").Result())(t)
	product := stats.(map[any]any)["rules"].(map[any]any)["product"].(map[any]any)
	if events := product["events"]; events != reported {
		t.Errorf("the client has reported %d uses, the server has counted %v", reported, events)
	}
	if reads := product["hits"].(int64) + product["misses"].(int64); reads != uses {
		t.Errorf("the client has made %d reads, the server received %d", uses, reads)
	}
}
