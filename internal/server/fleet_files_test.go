package server

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// A compose is what the test reads of deploy/fleet/compose.yaml.
type compose struct {
	Services map[string]struct {
		Command     []string
		Environment map[string]string
	}
}

// fleetFile returns the path of a file of deploy/fleet, and its text.
func fleetFile(t *testing.T, name string) (path, text string) {
	t.Helper()
	path = must.Get(filepath.Abs(filepath.Join("..", "..", "deploy", "fleet", name)))(t)
	data := must.Get(os.ReadFile(path))(t)
	return path, string(data)
}

// rightsOf returns the user, the password, the keys and the commands of an ACL line.
func rightsOf(line string) []string {
	return slices.DeleteFunc(strings.Fields(line), func(word string) bool { return word == "ACL" || word == "SETUSER" || word == "user" || word[0] == '>' })
}

// fleet starts the store and the servers of the compose file, with the settings that it gives
// them, on addresses of this test.
func fleet(t *testing.T) (nodes []*node) {
	t.Helper()
	_, text := fleetFile(t, "compose.yaml")
	var all compose
	must.Do(t, yaml.Unmarshal([]byte(text), &all))
	command := all.Services["valkey"].Command
	for i, word := range command {
		if word == "--aclfile" {
			command[i+1], _ = fleetFile(t, "users.acl")
		}
	}
	redis := redistest.Own(t, command[1:]...)
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(all.Services)) {
		if !strings.HasPrefix(name, "lately-") {
			continue
		}
		var given []string
		for key, value := range all.Services[name].Environment {
			given = append(given, key+"="+value)
		}
		var c Config
		must.Do(t, ReadEnvironment(&c, variables(dockerfile(t), given...)))
		must.Do(t, c.Validate())
		store := must.Get(url.Parse(c.Store))(t)
		c.Store = (&url.URL{Scheme: "unix", User: store.User, Path: redis.Socket(), RawQuery: slowStore[1:]}).String()
		c.RESP, c.HTTP, c.TokenFile, c.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", filepath.Join(dir, "tokens"), -1
		c.StoreTimeout = 10 * time.Second // the machine is busy
		c.RulesFiles = make([]string, 1)
		c.RulesFiles[0], _ = fleetFile(t, "rules.yaml")
		n := &node{t: t, log: new(safeBuffer)}
		n.Server, n.url = startedWith(t, c, slog.New(slog.NewTextHandler(n.log, nil)))
		n.wantReady(200)
		nodes = append(nodes, n)
	}
	return nodes
}

// TestFleetFiles runs the servers of deploy/fleet with one store behind HAProxy with the documented
// files: clients on any connection have one limit.
func TestFleetFiles(t *testing.T) {
	nodes := fleet(t)
	if len(nodes) != 3 {
		t.Fatalf("%d servers, want 3", len(nodes))
	}
	_, text := fleetFile(t, "haproxy.cfg")
	dir := t.TempDir()
	var addresses []string
	for i, n := range nodes {
		resp, http := n.Addresses()
		_, port, _ := net.SplitHostPort(http)
		name := fmt.Sprintf("lately-%d:", i+1)
		addresses = append(addresses, name+"7379 port 7380", resp+" port "+port, name+"7380", http)
		if text := healthz(t, http); !strings.HasPrefix(text, "HTTP/1.0 200 ") {
			t.Errorf("the check of HAProxy answers %q", text)
		}
	}
	socket := filepath.Join(dir, "resp")
	text = strings.NewReplacer(append(addresses, "bind :7379", "bind unix@"+socket, "bind :7380", "bind unix@"+filepath.Join(dir, "http"))...).Replace(text)
	config := filepath.Join(dir, "haproxy.cfg")
	must.Do(t, os.WriteFile(config, []byte(text), 0o600))
	path, err := exec.LookPath("haproxy")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Skip("SKIP: there is no haproxy here; apt-get install haproxy")
		}
	}
	proxy := exec.Command(path, "-db", "-f", config)
	must.Do(t, proxy.Start())
	t.Cleanup(func() {
		proxy.Process.Kill()
		proxy.Wait()
	})
	tokens := must.Get(os.ReadFile(nodes[0].config.TokenFile))(t)
	_, token, _ := strings.Cut("\n"+string(tokens), "\ncheck ")
	token = strings.Fields(token)[0]
	var conn net.Conn
	eventually(t, "HAProxy listens", func() bool {
		conn, err = net.Dial("unix", socket)
		return err == nil
	})
	conn.Close()
	allowed := 0
	for range 12 {
		conn := must.Get(net.Dial("unix", socket))(t)
		fmt.Fprintf(conn, "AUTH %s\r\n%sQUIT\r\n", token, strings.Repeat("TAKE per-client 192.0.2.1\r\n", 10))
		replies := must.Get(io.ReadAll(conn))(t)
		conn.Close()
		allowed += strings.Count(string(replies), "*7\r\n:1\r\n")
		if n := strings.Count(string(replies), "*7\r\n"); n != 10 {
			t.Errorf("%d decisions of 10: %q", n, replies)
		}
	}
	if allowed != 60 {
		t.Errorf("%d of 120 are allowed on 12 connections, want the limit of 60", allowed)
	}
	for i, n := range nodes {
		if n.engine.Totals() == nodes[0].engine.Totals() && n.engine.Totals().Allowed+n.engine.Totals().Refused == 0 {
			t.Errorf("server %d has decided nothing", i+1)
		}
		if s := n.store.status(); s.Failures > 0 {
			t.Errorf("server %d: %+v", i+1, s)
		}
		eventually(t, "the store is up", func() bool { return n.store.status().Up })
	}
	// The user in the file is the user in the documentation.
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "redis.md")))(t)
	_, users := fleetFile(t, "users.acl")
	var documented, given []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "ACL ") {
			documented = rightsOf(line)
		}
	}
	for line := range strings.Lines(users) {
		if strings.HasPrefix(line, "user lately ") {
			given = rightsOf(line)
		}
	}
	if !slices.Equal(documented, given) || len(given) < 5 {
		t.Errorf("users.acl has %q; docs/redis.md has %q", given, documented)
	}
}

// healthz returns the answer to the check of HAProxy, which names no host.
func healthz(t *testing.T, address string) string {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	defer conn.Close()
	fmt.Fprint(conn, "GET /healthz HTTP/1.0\r\n\r\n")
	text := must.Get(io.ReadAll(conn))(t)
	return string(text)
}
