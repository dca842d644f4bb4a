package journal

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

const childEnv = "LATELY_JOURNAL_CHILD"

// child is a process that appends numbers from four goroutines and writes those
// to its output that are acknowledged, and snapshots meanwhile, until it is killed.
func child(path string) {
	die := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	d, state, err := openSet(path)
	die(err)
	var mu sync.Mutex // over state, and the order of the journal
	next := uint64(len(state))
	for range 4 {
		go func() {
			for {
				mu.Lock()
				next++
				n := next
				state[n] = true
				p, err := d.Append(1, binary.LittleEndian.AppendUint64(nil, n))
				mu.Unlock()
				die(err)
				die(p.Wait())
				fmt.Println(n)
			}
		}()
	}
	for {
		die(d.WriteSnapshot(func(add func(byte, []byte) error) error {
			mu.Lock()
			var all [][]byte
			for n := range state {
				all = append(all, binary.LittleEndian.AppendUint64(nil, n))
			}
			mu.Unlock()
			for _, b := range all {
				if err := add(1, b); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// openSet opens a directory with a state of numbers.
func openSet(path string) (*Journal, map[uint64]bool, error) {
	set := map[uint64]bool{}
	d, found, err := Open(path, func(r Record) error {
		set[binary.LittleEndian.Uint64(r.Data)] = true
		return nil
	})
	if err == nil && found.Damaged+int64(found.Missing) > 0 {
		err = fmt.Errorf("damaged: %+v", found)
	}
	return d, set, err
}

// TestKill kills a process with SIGKILL at any moment, and checks that everything it reported as written is on disk.
func TestKill(t *testing.T) {
	if _, err := os.Executable(); err != nil {
		t.Skip(err)
	}
	rounds := 5
	if longTests() {
		rounds = 200
	}
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "state")
	const least = 10 // in each round, however slow the disk is
	acked := map[uint64]bool{}
	for round := range rounds {
		for _, n := range killed(t, path, least, time.Duration(20+rng.IntN(80))*time.Millisecond) {
			acked[n] = true
		}
		d, set, err := openSet(path)
		if err != nil {
			t.Fatal(err)
		}
		must.Do(t, d.Close())
		for n := range acked {
			if !set[n] {
				t.Fatalf("round %d: %d of %d acknowledged is lost", round, n, len(acked))
			}
		}
		for n := range set {
			if n == 0 || n > uint64(len(set)) {
				t.Fatalf("round %d: %d is there, of %d", round, n, len(set))
			}
		}
	}
	t.Logf("%d kills, %d acknowledged, none lost", rounds, len(acked))
	if len(acked) < least*rounds {
		t.Errorf("only %d were acknowledged: that tests nothing", len(acked))
	}
}

// killed runs a child, kills it some time after a number of numbers, and returns its numbers.
func killed(t *testing.T, path string, least int, after time.Duration) (acked []uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var timer *time.Timer
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if err != nil { // the last line may be incomplete
			if err != io.EOF {
				t.Error(err)
			}
			break
		}
		n, err := strconv.ParseUint(line[:len(line)-1], 10, 64)
		if err != nil {
			t.Errorf("the child prints %q", line)
			continue
		}
		if acked = append(acked, n); timer == nil && len(acked) == least {
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // the error that it was killed
	if timer != nil {
		timer.Stop()
	}
	return acked
}
