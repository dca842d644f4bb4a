package keys

import (
	"slices"
	"testing"

	"github.com/lately-go/lately/match"
)

func TestSplit(t *testing.T) {
	one, two := match.MustKey("client"), match.MustKey("client", "user")
	for _, c := range []struct {
		key  match.Key
		text string
		want []string
		err  string
	}{
		{one, "a\tb", []string{"x", "a\tb"}, ""},
		{one, "", []string{"x", ""}, ""},
		{two, "a\tb", []string{"x", "a", "b"}, ""},
		{two, "a\t", []string{"x", "a", ""}, ""},
		{two, "a", nil, "BADARG number of key values: 1: must be 2: client, user"},
		{two, "", nil, "BADARG number of key values: 1: must be 2: client, user"},
		{two, "a\tb\tc", nil, "BADARG number of key values: 3: must be 2: client, user"},
	} {
		got, err := Split([]string{"x"}, &c.key, c.text)
		switch {
		case c.err == "" && (err != nil || !slices.Equal(got, c.want)):
			t.Errorf("%v: %q gives %q, %v, want %q", c.key, c.text, got, err, c.want)
		case c.err != "" && (err == nil || err.Error() != c.err || len(got) != 1):
			t.Errorf("%v: %q gives %q, %v, want the error %q", c.key, c.text, got, err, c.err)
		}
	}
	dst := make([]string, 0, 2)
	if n := testing.AllocsPerRun(10, func() { Split(dst, &two, "a\tb") }); n != 0 {
		t.Errorf("Split allocates %v times", n)
	}
}
