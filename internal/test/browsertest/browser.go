// Package browsertest drives a headless Chromium in tests of pages, as people use them:
// with a mouse, a keyboard and a phone.
package browsertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// A Browser is a headless Chromium, driven over the pipes of its DevTools
// protocol: messages of JSON, each ended by a zero byte.
type Browser struct {
	cmd  *exec.Cmd
	to   io.WriteCloser
	done chan struct{} // closed when nothing more is read

	mu     sync.Mutex
	last   int
	calls  map[int]chan message
	pages  map[string]*Tab // by session
	broken error
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Patience is how long the browser may take for anything.
const Patience = time.Minute

// Start starts a browser that ends with the test, or skips the test if there is none.
func Start(t *testing.T) *Browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed (chromium-headless-shell or chromium): the page is not driven")
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "--disable-gpu", "--hide-scrollbars", "--mute-audio",
		"--force-color-profile=srgb", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--lang=en",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // which it requires
	}
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // its descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &Browser{cmd: cmd, to: to, done: make(chan struct{}), calls: make(map[int]chan message), pages: make(map[string]*Tab)}
	go b.read(from)
	t.Cleanup(func() {
		b.call("", "Browser.close", nil, nil)
		to.Close()
		<-b.done
		from.Close()
		cmd.Wait()
	})
	return b
}

func (b *Browser) read(from io.Reader) {
	defer close(b.done)
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.broken = fmt.Errorf("the browser has gone: %w", err)
			for id, c := range b.calls {
				delete(b.calls, id)
				close(c)
			}
			b.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c, ok := b.calls[m.ID]; ok && m.ID != 0 {
			delete(b.calls, m.ID)
			c <- m
		} else if p := b.pages[m.Session]; p != nil {
			p.happened(m)
		}
		b.mu.Unlock()
	}
}

// call sends a command to the browser, and puts its answer into result, if not nil.
func (b *Browser) call(session, method string, params, result any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		p = []byte("{}")
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.broken != nil {
		b.mu.Unlock()
		return b.broken
	}
	b.last++
	m := message{ID: b.last, Session: session, Method: method, Params: p}
	b.calls[m.ID] = answer
	b.mu.Unlock()
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(line, 0)); err != nil {
		return err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return b.broken
		}
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-time.After(Patience):
		return fmt.Errorf("%s: no answer for %v", method, Patience)
	}
}
