package server

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// The log at a start: no snapshot the first time, and the next time the snapshot
// that was written at the end.
func TestRestoredStateIsLogged(t *testing.T) {
	c := Config{Data: t.TempDir(), RESP: "127.0.0.1:0", HTTP: Off}
	for _, want := range []string{`msg="state restored" .*snapshot=none `, `msg="state restored" .*snapshot=20[0-9-]+T[0-9:]+Z `} {
		var log bytes.Buffer
		s := must.Get(New(c, "test", slog.New(slog.NewTextHandler(&log, nil))))(t)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		must.Do(t, s.Run(ctx))
		if !regexp.MustCompile(want).Match(log.Bytes()) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
}
