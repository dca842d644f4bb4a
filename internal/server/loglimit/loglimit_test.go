package loglimit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/loglimit"
)

// A safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

// Each line is written or counted: none is lost, and no message has many a second.
func TestEachLineIsWrittenOrCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out safeBuffer
		log := slog.New(loglimit.New(slog.NewTextHandler(&out, nil)))
		other := log.With("part", "b")
		const each = 1000
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for i := range each {
					other.Info("flood", "i", i)
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		for range 5 {
			log.Warn("calm", "x", "y")
			time.Sleep(100 * time.Millisecond)
		}
		group.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		text := out.b.String()
		if n := strings.Count(text, `level=WARN msg=calm x=y`); n != 5 {
			t.Errorf("%d lines of the other message; want 5", n)
		}
		written, suppressed := strings.Count(text, "level=INFO msg=flood part=b i="), 0
		for _, m := range regexp.MustCompile(`level=INFO msg=flood suppressed=(\d+)`).FindAllStringSubmatch(text, -1) {
			n, _ := strconv.Atoi(m[1])
			suppressed += n
		}
		if written+suppressed != 4*each || written > 20*7 || written < 20*4 {
			t.Errorf("%d written and %d suppressed of %d", written, suppressed, 4*each)
		}
	})
}

// Messages that are all different are passed on, and take no memory without bound.
func TestManyMessages(t *testing.T) {
	var out safeBuffer
	log := slog.New(loglimit.New(slog.NewTextHandler(&out, nil)).WithGroup("g"))
	for i := range 1000 {
		log.Info(fmt.Sprint("message ", i), "a", 1)
	}
	if n := strings.Count(out.b.String(), " g.a=1\n"); n != 1000 {
		t.Errorf("%d lines; want 1000", n)
	}
}
