// Restore measures how fast limiter keys come back from a snapshot, and what memory
// they take then.
//
//	go run ./restore -keys 6000000
//
// Each key has been allowed three times under a sliding limit of 100 per 10 minutes.
// The first figure is that of the library, whose chunks are in memory; the second is that of the
// server, which reads a data directory. Each is measured in a process of its own, whose memory
// has nothing else in it.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

const (
	budget = 4 << 30
	rules  = "version: 1\nlimits:\n  - {name: per-client, key: client, limit: 100 per 10m}\n"
)

func main() {
	log.SetFlags(0)
	keys := flag.Int("keys", 6_000_000, "keys in the snapshot")
	child := flag.String("child", "", "what this process measures: library or server")
	dir := flag.String("dir", "", "where the snapshot is")
	flag.Parse()
	switch *child {
	case "library":
		restoreLibrary(filepath.Join(*dir, "chunks"))
		return
	case "server":
		restoreServer(*dir)
		return
	}
	temp, err := os.MkdirTemp("", "restore")
	check(err)
	defer os.RemoveAll(temp)
	fmt.Printf("%d keys, GOMAXPROCS %d, %s\n", *keys, runtime.GOMAXPROCS(0), runtime.Version())
	fillLibrary(*keys, filepath.Join(temp, "chunks"))
	fillServer(*keys, temp)
	for _, what := range []string{"library", "server"} {
		c := exec.Command(os.Args[0], "-child", what, "-dir", temp)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		check(c.Run())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// address is the i-th client.
func address(i int) string {
	return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
}

// fillLibrary writes the chunks of a limiter to a file, each with its length.
func fillLibrary(keys int, path string) {
	l := newLimiter()
	r, err := l.Rule("per-client")
	check(err)
	for range 3 {
		for i := range keys {
			if d := r.Take(address(i)); !d.Allowed {
				log.Fatal(d)
			}
		}
	}
	var b []byte
	began := time.Now()
	for chunk := range l.ExportAt(time.Now()) {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(chunk)))
		b = append(b, chunk...)
	}
	fmt.Printf("export:  %.2f s, %.1f bytes a key\n", time.Since(began).Seconds(), float64(len(b))/float64(keys))
	check(os.WriteFile(path, b, 0o600))
}

func newLimiter() *ratelimit.Limiter {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 100, Span: 10 * time.Minute}},
	})
	check(err)
	l, err := ratelimit.NewLimiter(set, ratelimit.Config{Budget: budget})
	check(err)
	return l
}

// restoreLibrary imports the chunks of a file by as many goroutines as there are cores.
func restoreLibrary(path string) {
	b, err := os.ReadFile(path)
	check(err)
	size := len(b)
	l := newLimiter()
	runtime.GC()
	before, cpu := rss(), cpuTime()
	began := time.Now()
	chunks := make(chan []byte, 16)
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		sum     window.Imported
	)
	take := func(chunk []byte) {
		n, err := l.ImportAt(time.Now(), chunk)
		check(err)
		mu.Lock()
		sum.Add(n)
		mu.Unlock()
	}
	for first := true; len(b) > 0; first = false {
		n := binary.LittleEndian.Uint32(b)
		chunk := b[4:][:n]
		b = b[4+n:]
		if first {
			take(chunk)
			for range runtime.GOMAXPROCS(0) {
				workers.Go(func() {
					for chunk := range chunks {
						take(chunk)
					}
				})
			}
			continue
		}
		chunks <- chunk
	}
	close(chunks)
	workers.Wait()
	b = nil
	report("library", sum.Keys, time.Since(began), cpuTime()-cpu, before-size)
	runtime.KeepAlive(l)
}

// fillServer writes the data directory of a server.
func fillServer(keys int, dir string) {
	check(os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))
	s, err := newServer(dir, io.Discard)
	check(err)
	c := s.Engine().Session()
	for range 3 {
		for i := range keys {
			check(c.QueueTake("per-client", 1, engine.Terms{}, address(i)))
			for d, err := range c.Decide() {
				if err != nil || !d.Allowed {
					log.Fatal(d, err)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	check(s.Run(ctx)) // writes the snapshot in the end
}

func newServer(dir string, out io.Writer) (*server.Server, error) {
	return server.New(server.Config{
		RulesFiles: []string{filepath.Join(dir, "rules.yaml")}, Data: filepath.Join(dir, "data"),
		RESP: "127.0.0.1:0", HTTP: "off", Memory: 4 * budget,
	}, "benchmark", slog.New(slog.NewTextHandler(out, nil)))
}

func restoreServer(dir string) {
	before, cpu := rss(), cpuTime()
	began := time.Now()
	s, err := newServer(dir, io.Discard)
	check(err)
	took := time.Since(began)
	report("server", s.Engine().Limiter().Stats().Rules[0].Keys, took, cpuTime()-cpu, before)
}

// report prints keys a second, and the resident memory that is left when the garbage has
// been given back.
func report(what string, keys int, took, cpu time.Duration, before int) {
	peak := rss()
	debug.FreeOSMemory()
	fmt.Printf("%-8s %d keys in %.2f s: %.2f M keys/s, %d ns of processor time a key; %d bytes a key resident, %d before garbage collection\n",
		what+":", keys, took.Seconds(), float64(keys)/took.Seconds()/1e6, cpu.Nanoseconds()/int64(keys), (rss()-before)/keys, (peak-before)/keys)
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss returns the resident memory of this process in bytes.
func rss() int {
	b, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.Atoi(string(bytes.Fields(b)[1]))
	check(err)
	return pages * os.Getpagesize()
}
