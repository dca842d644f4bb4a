package latelyredis

import (
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// all returns the scripts of a rule set with each window.
func all(t testing.TB) []string {
	var rules []ratelimit.Rule
	for i, name := range limit.Algorithms() {
		l := ratelimit.Limit{N: 1000, Span: limit.MaxSpan}
		if a := ratelimit.Algorithm(i); a == ratelimit.Calendar {
			l = ratelimit.Limit{N: 1000, Per: ratelimit.PerDay}
		}
		rules = append(rules, ratelimit.Rule{Name: name, Key: match.MustKey("path"), Algorithm: ratelimit.Algorithm(i), Limits: []ratelimit.Limit{l}})
	}
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rules...))(t)
	s := newScripts(source("clock"), set)
	texts := []string{s.decide.text, s.repair.text, s.correct.text, s.list.text, s.page.text, s.sync.text, s.memory.text}
	for _, f := range s.fast {
		texts = append(texts, f.text)
	}
	counters := must.Get(NewCounters(CountersConfig{}))(t)
	return append(texts, counters.scripts.pass.text, counters.scripts.write.text, counters.scripts.page.text)
}

// undeclared returns what a script does to keys that are not in KEYS, or by commands that
// the documentation does not list.
func undeclared(script string) (wrong []string) {
	allowed := []string{"TIME'", "GET', r.key", "SET', r.key", "DEL', r.key", "GET', key", "SET', key", "GET', KEYS", "SET', KEYS"}
	for _, command := range []string{"ZRANGEBYSCORE", "ZREM", "ZSCORE", "ZADD", "ZREVRANGE", "PEXPIRE"} {
		allowed = append(allowed, command+"', bans")
	}
	allowed = append(allowed, "INFO', 'memory'", "HDEL', details", "HSET', details", "HGET', details", "PEXPIRE', details", "XADD', changes", "XRANGE', changes", "XREVRANGE', changes", "ZADD', nodes", "ZREMRANGEBYSCORE', nodes", "ZCARD', nodes", "PEXPIRE', nodes", "PEXPIRE', changes", "GET', returns", "SET', returns", "GET', marker", "SET', marker")
	allowed = append(allowed, "GET', clock", "SET', clock", "XADD', log", "XRANGE', log", "XREVRANGE', log", "PEXPIRE', log", "ZREM', nodes", "ZSCORE', gone", "ZADD', gone", "ZREMRANGEBYSCORE', gone", "PEXPIRE', gone", "GET', wanted", "SET', wanted", "DEL', wanted",
		"XADD', state", "XRANGE', state", "XREVRANGE', state", "PEXPIRE', state", "DEL', state")
	for _, call := range regexp.MustCompile(`redis\s*\.\s*(\w+)\s*\(\s*'?([^)]*)`).FindAllStringSubmatch(script, -1) {
		if call[1] != "call" || !slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(call[2], a) }) {
			wrong = append(wrong, call[0])
		}
	}
	// A record has the key that it is read by, one of KEYS, and nothing else sets it.
	for _, set := range regexp.MustCompile(`\bkey\s*=\s*([^,}\n]+)|readRule\(([^,]+),`).FindAllStringSubmatch(script, -1) {
		if v := strings.TrimSpace(set[1] + set[2]); v != "key" && v != "r.key" && v != "KEYS[first + i]" && v != "KEYS[subject]" {
			wrong = append(wrong, set[0])
		}
	}
	if strings.Count(script, "redis")-strings.Count(script, "latelyredis") != strings.Count(script, "redis.call(") {
		wrong = append(wrong, "redis without call")
	}
	return wrong
}

// TestDeclaredKeys scans the scripts: they use the keys that they are given, and build no
// name. Clusters and some engines refuse others.
func TestDeclaredKeys(t *testing.T) {
	for _, script := range all(t) {
		if wrong := undeclared(script); len(wrong) > 0 {
			t.Errorf("a script has %q", wrong)
		}
		for _, bad := range []string{"redis.call('GET', 'lately:' .. r.key)", "redis.call('INCR', r.key)", "local r = {key = KEYS[1] .. 'x'}", "local call = redis.pcall"} {
			if len(undeclared(script+bad)) == 0 {
				t.Errorf("%s is not found", bad)
			}
		}
	}
}

// muldiv has the server work out a*b/c by the function of the scripts.
func muldiv(t testing.TB, c rueidis.Client, numbers ...int64) []string {
	t.Helper()
	const script = `
local out = {}
for i = 1, #ARGV, 3 do
  local q, r = muldiv(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
  out[#out + 1] = string.format('%.0f', q)
  out[#out + 1] = string.format('%.0f', r)
end
return out`
	var args []string
	for _, n := range numbers {
		args = append(args, strconv.FormatInt(n, 10))
	}
	out := must.Get(c.Do(t.Context(), c.B().Eval().Script(source("common")+script).Numkeys(0).Arg(args...).Build()).AsStrSlice())(t)
	return out
}

// TestMuldiv compares products of up to 102 bits, in the doubles of Lua, with whole numbers:
// the arithmetic of the buckets and slots is exact up to the ends of their ranges.
func TestMuldiv(t *testing.T) {
	client := ServerForTest(t)
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	const most = 1<<53 - 1
	var numbers []int64
	var want []string
	add := func(a, b, c int64) {
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		q, r := product.QuoRem(product, big.NewInt(c), new(big.Int))
		if q.IsInt64() && q.Int64() <= most {
			numbers, want = append(numbers, a, b, c), append(want, q.String(), r.String())
		}
	}
	for _, c := range []int64{1, 2, 3, 1000, 1<<32 - 1, 1<<48 + 1, 1<<49 - 1} {
		for _, a := range []int64{0, 1, c - 1, c, most, most - 1} {
			for _, b := range []int64{0, 1, c - 1, c, 1 << 32, most} {
				add(a, b, c)
				add(b, a, c)
			}
		}
	}
	for range 2000 {
		some := func(bits int) int64 { return rnd.Int64N(1 << (1 + rnd.IntN(bits))) }
		add(some(53), some(53), 1+some(49)%(1<<49-1))
	}
	got := muldiv(t, client, numbers...)
	for i := range want {
		if got[i] != want[i] {
			n := numbers[i/2*3:]
			t.Fatalf("%d * %d / %d: %s is %s, want %s", n[0], n[1], n[2], []string{"the quotient", "the rest"}[i%2], got[i], want[i])
		}
	}
	if len(want) < 3000 {
		t.Errorf("only %d were compared", len(want)/2)
	}
}

// TestFastFamily checks that rules have a fast script exactly if it can decide about them.
func TestFastFamily(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		a    ratelimit.Algorithm
		n    uint64
		span time.Duration
		want string
	}{
		{ratelimit.GCRA, 1000, day, "level"},
		{ratelimit.GCRA, 1_000_000, day, ""},
		{ratelimit.TwoBucket, 1000, day, "two"},
		{ratelimit.TwoBucket, 1_000_000, day, ""},
		{ratelimit.Fixed, 1_000_000, day, "period"},
		{ratelimit.Exact, 1000, day, "log"},
		{ratelimit.Sliding, 128, day, "log"},
		{ratelimit.Sliding, 1_000_000, day, "ring"},
		{ratelimit.LeakyBucket, 1000, day, ""},
	} {
		r := ratelimit.Rule{Algorithm: c.a, Limits: []ratelimit.Limit{{N: c.n, Span: c.span}}}
		if got := fastFamily(&r); got != c.want {
			t.Errorf("%v, %d in %v: %q, want %q", c.a, c.n, c.span, got, c.want)
		}
	}
}

func TestCodes(t *testing.T) {
	for message, want := range map[string]string{
		"READONLY You can't write against a read only replica.":                                                                     "READONLY",
		"LOADING Redis is loading the dataset in memory":                                                                            "LOADING",
		"ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value": "WRONGTYPE",
		"The user executing the script can't run this command or subcommand script: 73, on @user_script:336.":                       "NOPERM",
		"ACL failure in script: User default has no permissions to run the 'set' command script: 73, on @user_script:336.":          "NOPERM",
		"ERR something new": "ERR",
		"something new":     "ERR",
	} {
		if got := codeOf(message); got != want {
			t.Errorf("%q has the code %s, want %s", message, got, want)
		}
	}
}
