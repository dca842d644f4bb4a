package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
)

func TestFlagsReachTheConfig(t *testing.T) {
	var want bytes.Buffer
	c := accesslogtest.Config{Lines: 1500, Seed: 9, Duration: 2 * time.Hour}
	must.Get(accesslogtest.Write(&want, c))(t)
	var got, planted bytes.Buffer
	args := []string{"-lines", "1500", "-seed", "9", "-duration", "2h"}
	must.Do(t, run(args, &got, &planted))
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Error("the log is not the one of the same Config")
	}
	for _, s := range []string{"1500 lines", "flood:", "203.0.113.245 /login", "12 clients /search", "hot product:"} {
		if !strings.Contains(planted.String(), s) {
			t.Errorf("standard error does not contain %q:\n%s", s, &planted)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-lines -3", "Lines: -3: must be"},
		{"access.log", `unexpected argument "access.log"`},
		{"-nosuch", "not defined"},
	} {
		var out, diag bytes.Buffer
		err := run(strings.Fields(tt.args), &out, &diag)
		if err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
			t.Errorf("%s: error %v and %d bytes of log, want an error with %q and none", tt.args, err, out.Len(), tt.want)
		}
	}
	if err := run([]string{"-h"}, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v, want %v", err, flag.ErrHelp)
	}
}
