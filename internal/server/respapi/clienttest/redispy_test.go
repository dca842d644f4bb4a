package clienttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// redisPyScript sends with redis-py what the other tests send, with its default pipelines, which are transactions. It
// prints OK, or fails.
const redisPyScript = `
import os, redis
host, port, password = os.environ['HOST'], int(os.environ['PORT']), os.environ['PASSWORD'] or None

def same(got, want):
    if got != want:
        raise Exception('%r, want %r' % (got, want))

def raises(kind, f):
    try:
        f()
    except kind as e:
        return str(e)
    raise Exception('no %s' % kind.__name__)

c = redis.Redis(host=host, port=port, password=password, client_name='test')
same(c.ping(), True)
same(c.execute_command('TAKE', 'login', 'ada')[:4], [1, 3, 2, 0])
if not raises(redis.ResponseError, lambda: c.execute_command('TAKE', 'nosuch', 'ada')).startswith('NORULE'):
    raise Exception('a rule that is not there')
p = c.pipeline()
for _ in range(1000):
    p.execute_command('ADD', 'pages', '/a')
p.execute_command('SUM', 'pages', '/a')
same(p.execute()[1000], 1000)
p = c.pipeline()
p.execute_command('TAKE', 'login', 'tess', 'COST', 3)
p.execute_command('TAKE', 'login', 'tess')
same([d[0] for d in p.execute()], [1, 0])
p = c.pipeline()
p.execute_command('TAKE', 'login', 'tom')
p.execute_command('NOSUCH')
raises(redis.ResponseError, p.execute)
same(c.execute_command('PEEK', 'login', 'tom')[2], 2)
same(c.pipeline(transaction=False).execute_command('ADD', 'pages', '/c').execute(), [b'OK'])
raises(redis.ResponseError, lambda: c.pipeline().watch('login'))
same(len(c.execute_command('TAKE', 'queue', 'ada')), 7)
same(0 < c.execute_command('TAKE', 'queue', 'ada')[7] <= 60000, True)
same([c.execute_command('TAKE', 'uploads', 'ada')[0] for _ in range(2)], [1, 0])
same([c.execute_command('RELEASE', 'uploads', 'ada') for _ in range(2)], [1, 0])
same(c.execute_command('TAKE', 'uploads', 'ada')[0], 1)
same(c.execute_command('CL.THROTTLE', 'user123', 0, 1, 60), [0, 1, 0, -1, 60])
same(c.delete('user123', 'nosuch'), 1)
same(c.execute_command('CL.THROTTLE', 'user123', 0, 1, 60), [0, 1, 0, -1, 60])
same(c.client_getname(), 'test')
same(c.info('stats')['decisions_allowed'] > 0, True)
if password:
    # Errors of authentication are those that redis-py knows.
    raises(redis.AuthenticationError, lambda: redis.Redis(host=host, port=port).execute_command('TAKE', 'login', 'ada'))
    wrong = raises(redis.RedisError, lambda: redis.Redis(host=host, port=port, password='wrong').ping())
    same('token is unknown' in wrong, True)
s = c.pubsub()
s.psubscribe('bans*')
same(s.get_message(timeout=10)['type'], 'psubscribe')
c.execute_command('BAN', 'login', 'eve', '10m')
m = s.get_message(timeout=10)
same((m['channel'], b'"eve"' in m['data']), (b'bans', True))
print('OK')
`

// TestRedisPy needs Python 3 and its module redis.
func TestRedisPy(t *testing.T) {
	python := pythonWithRedis(t)
	for _, password := range []string{"", token} {
		addr, _ := serve(t, password != "")
		host, port, _ := strings.Cut(addr, ":")
		cmd := exec.CommandContext(t.Context(), python, "-c", redisPyScript)
		cmd.Env = append(os.Environ(), "HOST="+host, "PORT="+port, "PASSWORD="+password)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "OK\n" {
			t.Errorf("with password %q: %v\n%s", password, err, out)
		}
	}
}

// pythonWithRedis returns a Python 3 that has the module redis, or skips the test.
func pythonWithRedis(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	t.Skip("SKIP: there is no Python 3 with the module redis; it is in Debian's package python3-redis")
	return ""
}
