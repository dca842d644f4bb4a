package follow

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// A slowWriter writes nothing until it may.
type slowWriter struct {
	began chan struct{}
	may   chan struct{}
	text  strings.Builder
}

func (w *slowWriter) Write(b []byte) (int, error) {
	select {
	case w.began <- struct{}{}:
	default:
	}
	<-w.may
	return w.text.Write(b)
}

// TestSlowLog saves the state while a line of the log cannot be written. All lines are written in the end, in order.
func TestSlowLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w := &slowWriter{began: make(chan struct{}, 1), may: make(chan struct{})}
	r := newReader(t, Config{Log: slog.New(slog.NewTextHandler(w, nil)).With("of", "test")}, path)
	write(t, path, "a")
	polled := make(chan struct{})
	go func() {
		r.poll(context.Background(), r.now)
		close(polled)
	}()
	<-w.began
	if saved := r.save(); len(saved) == 0 {
		t.Error("nothing is saved")
	}
	close(w.may)
	<-polled
	first, second, _ := strings.Cut(w.text.String(), "\n")
	if !strings.Contains(first, "the format of the log is known") || !strings.Contains(first, "of=test") {
		t.Errorf("the log is %s\n%s", first, second)
	}
}
