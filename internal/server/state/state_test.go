package state_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/window"
)

// A Writer adds nothing after its first error, and a value that JSON cannot have is one.
func TestWriterEndsAtTheFirstError(t *testing.T) {
	full := errors.New("disk full")
	var records []string
	w := state.NewWriter(func(typ byte, data []byte) error {
		if len(records) == 3 {
			return full
		}
		records = append(records, string(typ)+string(data))
		return nil
	})
	w.JSON('a', 1)
	w.Chunks('b', []byte("head "), slices.Values([][]byte{[]byte("x"), []byte("y"), []byte("z")}))
	w.Record('c', nil)
	if want := []string{"a1", "bhead x", "bhead y"}; !slices.Equal(records, want) || w.Err() != full {
		t.Errorf("%q, %v; want %q and %v", records, w.Err(), want, full)
	}
	w = state.NewWriter(func(byte, []byte) error { return nil })
	if w.JSON('a', func() {}); w.Err() == nil {
		t.Error("a function as JSON: no error")
	}
}

// A Loader imports the first chunk before it begins with others, all chunks, each from memory of its own, and adds up their
// counts. It returns an error of any.
func TestConcurrentLoader(t *testing.T) {
	const chunks = 200
	now := time.Unix(1, 0)
	l := state.NewLoader(func() time.Time { return now })
	var mu sync.Mutex
	seen := map[string]bool{}
	load := func(at time.Time, chunk []byte) (window.Imported, error) {
		mu.Lock()
		defer mu.Unlock()
		if first := len(seen) == 0; !at.Equal(now) || first != (string(chunk) == "000") {
			t.Errorf("chunk %s is imported at %v, %d before it", chunk, at, len(seen))
		}
		seen[string(chunk)] = true
		return window.Imported{Keys: 2}, nil
	}
	var total window.Imported
	buf := make([]byte, 3)
	for i := range chunks {
		copy(buf, fmt.Sprintf("%03d", i))
		must.Do(t, l.Load(&total, buf, load))
	}
	if err := l.Wait(); err != nil || len(seen) != chunks || total.Keys != 2*chunks {
		t.Errorf("%d chunks with %d keys, %v; want %d with %d", len(seen), total.Keys, err, chunks, 2*chunks)
	}
	damaged := errors.New("damaged")
	l.Load(&total, buf, func(time.Time, []byte) (window.Imported, error) { return window.Imported{}, damaged })
	if err := l.Wait(); err != damaged {
		t.Errorf("%v, want %v", err, damaged)
	}
}
