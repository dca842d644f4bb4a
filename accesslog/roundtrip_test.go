package accesslog_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// TestFormatStringRoundTrip makes format strings of random variables and texts, and lines
// of random values that do not hold the text after them: each field is its value. In a
// control, values do, and some are cut.
func TestFormatStringRoundTrip(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 3_000 {
		if text, got, want := roundTrip(t, rng, false); got != want {
			t.Fatalf("seed %d: %s\ngot  %s\nwant %s", seed, text, got, want)
		}
	}
	cut := 0
	for range 3_000 {
		if _, got, want := roundTrip(t, rng, true); got != want {
			cut++
		}
	}
	if cut == 0 {
		t.Errorf("seed %d: values that hold the text after them are never cut", seed)
	}
}

func roundTrip(t *testing.T, rng *rand.Rand, hostile bool) (text, got, want string) {
	t.Helper()
	variables := map[string]string{"${tenant}": "tenant", "${region}": "region", "${http_host}": "host", "${http_referer}": "referer", "${http_user_agent}": "agent", "${remote_user}": "user", "${status}": "status"}
	texts := []string{" ", "|", " - ", "\t", "] [", "::", "x=", `" "`}
	format, line, before := "nginx:$msec", "1523946306", " "
	values := map[string]string{}
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		after := texts[rng.IntN(len(texts))]
		value := randomValue(rng, before, after, hostile)
		if name == "${status}" {
			value = fmt.Sprint(100 + rng.IntN(500))
		}
		format, line, before = format+before+name, line+before+value, after
		values[variables[name]] = value
	}
	format, line = format+before, line+before
	f, err := accesslog.ParseFormat(format)
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	p, _ := f.NewParser(accesslog.Options{})
	var ev match.Event
	p.Parse([]byte(line), &ev)
	for _, name := range names {
		field := variables[name]
		got += fmt.Sprintf(" %s=%q", field, ev.GetNamed(field))
		want += fmt.Sprintf(" %s=%q", field, values[field])
	}
	return format + "\n" + line, got, want
}

// randomValue returns a value between two texts. A value between quotes has escaped quotes.
func randomValue(rng *rand.Rand, before, after string, hostile bool) string {
	letters := "ab \\\"-[]:|=x\t"
	for {
		b := make([]byte, rng.IntN(8))
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		v := string(b)
		quoted := strings.HasSuffix(before, `"`) && strings.HasPrefix(after, `"`)
		if quoted {
			v = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v)
		}
		whole := v + after
		if v != "-" && (hostile || quoted || strings.Index(whole, after) == len(v)) {
			return v
		}
	}
}
