package clienttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ioredisScript sends with ioredis what the other tests send. It prints OK, or fails.
const ioredisScript = `
const Redis = require('ioredis');
const [host, port, password] = [process.env.HOST, +process.env.PORT, process.env.PASSWORD || undefined];
const same = (got, want) => { if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(JSON.stringify(got) + ', want ' + JSON.stringify(want)); };
(async () => {
  const c = new Redis({ host, port, password, connectionName: 'test', maxRetriesPerRequest: 1 });
  same(await c.ping(), 'PONG');
  same((await c.call("TAKE", "login", "ada")).slice(0, 4), [1, 3, 2, 0]);
  same((await c.call("TAKE", "login", "ada", "COST", 2)).slice(0, 4), [1, 3, 0, 0]);
  same((await c.call('TAKE', 'nosuch', 'ada').catch(e => e.message)).split(' ')[0], 'NORULE');
  const p = c.pipeline();
  for (let i = 0; i < 1000; i++) p.call('ADD', 'pages', '/a');
  p.call('SUM', 'pages', '/a');
  same((await p.exec())[1000], [null, 1000]);
  same((await c.multi().call('ADD', 'pages', '/b', 2).call('SUM', 'pages', '/b').exec()), [[null, 'OK'], [null, 2]]);
  same((await c.multi().call('ADD', 'pages', '/b').call('NOSUCH').exec().catch(e => e.message)).split(' ')[0], 'EXECABORT');
  same(await c.call('SUM', 'pages', '/b'), 2);
  const s = new Redis({ host, port, password });
  await s.psubscribe('bans*');
  const told = new Promise(done => s.once('pmessage', (pattern, channel, text) => done([pattern, channel, JSON.parse(text).ban.key[0]])));
  await c.call('BAN', 'login', 'eve', '10m');
  same(await told, ['bans*', 'bans', 'eve']);
  await s.quit();
  await c.quit();
  console.log('OK');
})().catch(e => { console.error(e); process.exit(1); });
`

// TestIORedis needs node and its module ioredis, in NODE_PATH.
func TestIORedis(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIP: there is no node; it is in Debian's package nodejs")
	}
	if err := exec.Command(node, "-e", "require('ioredis')").Run(); err != nil {
		t.Skip("SKIP: node has no ioredis: npm install --prefix DIR ioredis@5, and NODE_PATH=DIR/node_modules")
	}
	for _, password := range []string{"", token} {
		addr, _ := serve(t, password != "")
		host, port, _ := strings.Cut(addr, ":")
		cmd := exec.CommandContext(t.Context(), node, "-e", ioredisScript)
		cmd.Env = append(os.Environ(), "HOST="+host, "PORT="+port, "PASSWORD="+password)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "OK\n" {
			t.Errorf("with password %q: %v\n%s", password, err, out)
		}
	}
}
