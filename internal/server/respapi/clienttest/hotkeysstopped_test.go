package clienttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The example clients with two servers, one of which is stopped: as with SIGSTOP, its connections stay open without
// answers. Only its unanswered reports are lost, and it is used again when it goes on.

const stoppedPython = `
import os, time
from hotkeys import HotKeys
products = HotKeys('product', [os.environ['ADDR'], os.environ['STOPPED']], str.upper, 60)
def up(n):
    while len(products._up) != n:
        time.sleep(0.01)
def use():
    for i in range(1000):
        products.get('/p/%d' % i)
def say(text):
    print(text, flush=True)
    return input()
up(2)
say('stop it')
use()
uses = 1000
while True:
    up(1)
    use()
    uses += 1000
    if say('used') != 'again':
        break
up(2)
products.close()
print(uses, uses - products.lost)
`

const stoppedJava = `
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;

public class UseStopped {
  static void up(HotKeys<String> products, int n) throws Exception {
    while (products.servers() != n) Thread.sleep(10);
  }

  static void use(HotKeys<String> products) {
    for (int i = 0; i < 1000; i++) products.get("/p/" + i);
  }

  static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

  static String say(String text) throws Exception {
    System.out.println(text);
    return IN.readLine();
  }

  public static void main(String[] args) throws Exception {
    var products = new HotKeys<String>("product", List.of(args[0], args[1]), null, 60_000, String::toUpperCase);
    up(products, 2);
    say("stop it");
    use(products);
    int uses = 1000;
    do {
      up(products, 1);
      use(products);
      uses += 1000;
    } while ("again".equals(say("used")));
    up(products, 2);
    products.close();
    System.out.println(uses + " " + (uses - products.lost.get()));
  }
}
`

// A stoppable is a server that can be stopped: a proxy in front of a real one.
type stoppable struct {
	addr string
	mu   sync.RWMutex // locked while it is stopped
}

func newStoppable(t *testing.T, server string) *stoppable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stoppable{addr: l.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			running.Go(func() { s.copy(to, c) })
			running.Go(func() { s.copy(c, to) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return s
}

// copy passes on what from sends, unless s is stopped.
func (s *stoppable) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		s.mu.RLock()
		_, err = to.Write(b[:n])
		s.mu.RUnlock()
		if err != nil {
			return
		}
	}
}

func TestHotKeysPythonStopped(t *testing.T) {
	python := pythonWithRedis(t)
	checkStopped(t, func(addr, stopped string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), python, "-c", stoppedPython)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+examples(t), "PYTHONDONTWRITEBYTECODE=1", "ADDR="+addr, "STOPPED="+stopped)
		return cmd
	})
}

func TestHotKeysJavaStopped(t *testing.T) {
	classpath := compileJava(t, "UseStopped", stoppedJava)
	checkStopped(t, func(addr, stopped string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "java", "-cp", classpath, "UseStopped", addr, stopped)
	})
}

// checkStopped runs a program that uses two servers. It prints when to stop the second and when it has used a thousand keys
// since, and at its end how many uses it has made and reported.
func checkStopped(t *testing.T, program func(addr, stopped string) *exec.Cmd) {
	t.Helper()
	addr, _ := serve(t, false)
	second, _ := serve(t, false)
	s := newStoppable(t, second)
	cmd := program(addr, s.addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(4*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	out := bufio.NewReader(pipe)
	expect := func(want string) {
		t.Helper()
		if line, err := out.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
			t.Errorf("the program prints %q, %v; want %q: does it wait for the server that is stopped?", line, err, want)
		}
	}
	expect("stop it")
	s.mu.Lock()
	_, _ = io.WriteString(in, "\n")
	counted := usedByFirst(t, addr, in, func() { expect("used") })
	s.mu.Unlock()
	_, _ = io.WriteString(in, "go on\n") // if it has ended, the last line is missing
	var uses, reported int64
	_, err = fmt.Fscan(out, &uses, &reported)
	if ended := cmd.Wait(); err != nil || ended != nil {
		t.Fatalf("%v, %v", err, ended)
	}
	if first := eventsOf(t, addr); !counted || first > reported { // the other may count what it received when it goes on
		t.Errorf("of %d uses %d were reported, %d of them to the first server, which has never counted all of a thousand", uses, reported, first)
	}
}

// usedByFirst has the program use its keys until the server at addr has counted all of a thousand. It may take
// more than one: on a slow machine the client takes this server for one that does not answer, too.
func usedByFirst(t *testing.T, addr string, in io.Writer, used func()) bool {
	t.Helper()
	used()
	for range 12 {
		before := int64(-1)
		for now := eventsOf(t, addr); now != before; now = eventsOf(t, addr) { // late reports are not of this thousand
			before = now
			time.Sleep(200 * time.Millisecond)
		}
		_, _ = io.WriteString(in, "again\n")
		used()
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if eventsOf(t, addr) >= before+1000 {
				return true
			}
		}
	}
	return false
}

// eventsOf returns how many uses a server has counted.
func eventsOf(t *testing.T, addr string) int64 {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	stats, err := c.Do(t.Context(), "HOT.STATS", "product").Result()
	if err != nil {
		t.Fatal(err)
	}
	return stats.(map[any]any)["rules"].(map[any]any)["product"].(map[any]any)["events"].(int64)
}

// compileJava compiles the client and a program that uses it, and returns the path of classes. It
// needs a JDK, and Gson from Debian's package libgoogle-gson-java.
func compileJava(t *testing.T, name, text string) (classpath string) {
	t.Helper()
	const gson = "/usr/share/java/gson.jar"
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("SKIP: there is no javac here")
	}
	if _, err := os.Stat(gson); err != nil {
		t.Skip("SKIP: there is no Gson; it is in Debian's package libgoogle-gson-java")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, name+".java")
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	javac := exec.CommandContext(t.Context(), "javac", "-Xlint:all", "-Werror", "-cp", gson, "-d", dir, filepath.Join(examples(t), "HotKeys.java"), program)
	if out, err := javac.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return dir + ":" + gson
}
