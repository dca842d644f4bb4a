package console_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A browser is a headless Chromium, driven over the pipes of its DevTools
// protocol: messages of JSON, each ended by a zero byte.
type browser struct {
	cmd  *exec.Cmd
	to   io.WriteCloser
	done chan struct{} // closed when nothing more is read

	mu     sync.Mutex
	last   int
	calls  map[int]chan message
	pages  map[string]*tab // by session
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

// patience is how long the browser may take for anything.
const patience = 20 * time.Second

// startBrowser starts a browser that ends with the test, or skips the test where
// there is none.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed (chromium-headless-shell or chromium): the console is not driven")
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
		args = append(args, "--no-sandbox") // which it refuses to be without
	}
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // its descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{cmd: cmd, to: to, done: make(chan struct{}), calls: make(map[int]chan message), pages: make(map[string]*tab)}
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

func (b *browser) read(from io.Reader) {
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

// call asks the browser, and puts its answer into result, if not nil.
func (b *browser) call(session, method string, params, result any) error {
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
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer for %v", method, patience)
	}
}

// A tab is one page of a browser, with cookies and storage of its own.
type tab struct {
	b       *browser
	t       *testing.T
	session string

	mu    sync.Mutex
	wrong []string // what the page complained of
}

// open opens url in a tab of that size.
func (b *browser) open(t *testing.T, url string, width, height int) *tab {
	t.Helper()
	p := &tab{b: b, t: t}
	var made struct{ BrowserContextID, TargetID, SessionID string }
	p.must(b.call("", "Target.createBrowserContext", nil, &made))
	context := made.BrowserContextID
	p.must(b.call("", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context}, &made))
	p.must(b.call("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made))
	p.session = made.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	t.Cleanup(func() { b.call("", "Target.disposeBrowserContext", map[string]any{"browserContextId": context}, nil) })
	for _, domain := range []string{"Page", "Runtime", "Log", "Accessibility"} {
		p.do(domain+".enable", nil)
	}
	p.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	p.size(width, height)
	p.do("Page.navigate", map[string]any{"url": url})
	p.wait(`document.readyState === 'complete' && document.querySelector('main')?.childElementCount > 0`)
	return p
}

func (p *tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) do(method string, params any) {
	p.t.Helper()
	p.must(p.b.call(p.session, method, params, nil))
}

// happened notes what is wrong in the page: exceptions, errors on its console,
// what its policy blocked, requests that failed.
func (p *tab) happened(m message) {
	var e struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry struct{ Level, Text, URL string }
	}
	json.Unmarshal(m.Params, &e)
	text := ""
	switch {
	case m.Method == "Runtime.exceptionThrown":
		text = e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description
	case m.Method == "Runtime.consoleAPICalled" && (e.Type == "error" || e.Type == "warning"):
		text = fmt.Sprint(e.Args)
	case m.Method == "Log.entryAdded" && (e.Entry.Level == "error" || e.Entry.Level == "warning"):
		text = e.Entry.Text + " " + e.Entry.URL
	}
	if text == "" {
		return
	}
	p.mu.Lock()
	p.wrong = append(p.wrong, text)
	p.mu.Unlock()
}

// complaints returns what was wrong since it was last asked.
func (p *tab) complaints() []string {
	p.js(`1`, nil) // what happened before has been told before this is answered
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.wrong
	p.wrong = nil
	return w
}

// clean fails the test if anything was wrong.
func (p *tab) clean() {
	p.t.Helper()
	for _, w := range p.complaints() {
		p.t.Errorf("the page complains: %s", w)
	}
}

// js evaluates an expression, waits for it if it is a promise, and puts its value
// into v, if not nil.
func (p *tab) js(expression string, v any) {
	p.t.Helper()
	p.must(p.try(expression, v))
}

func (p *tab) try(expression string, v any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.b.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	if err != nil {
		return err
	}
	if d := r.ExceptionDetails; d != nil {
		return errors.New(d.Text + " " + d.Exception.Description)
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, v)
}

// wait waits until an expression holds.
func (p *tab) wait(expression string) {
	p.t.Helper()
	var ok bool
	look := `new Promise((done) => {
		const end = performance.now() + 10e3;
		const look = () => {
			let is = false;
			try { is = Boolean(` + expression + `); } catch {}
			if (is || performance.now() > end) done(is);
			else setTimeout(look, 15);
		};
		look();
	})`
	err := p.try(look, &ok)
	for range 3 { // a page that is left takes the question with it
		if err == nil || !strings.Contains(err.Error(), "navigated") && !strings.Contains(err.Error(), "context") {
			break
		}
		err = p.try(look, &ok)
	}
	p.must(err)
	if !ok {
		var text string
		p.js(`location.hash + '\n' + document.body.innerText.slice(0, 3000)`, &text)
		p.t.Fatalf("never came true: %s\nthe page complains: %q\nthe page:\n%s", expression, p.complaints(), text)
	}
}

// click presses the mouse in the middle of the one element that selector finds.
func (p *tab) click(selector string) {
	p.t.Helper()
	s, _ := json.Marshal(selector)
	p.wait(`document.querySelector(` + string(s) + `)?.getBoundingClientRect().width`)
	var at struct {
		X, Y float64
		Hit  bool
	}
	p.js(`(() => {
		const e = document.querySelector(`+string(s)+`);
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = e.getClientRects()[0], x = r.x + r.width / 2, y = r.y + r.height / 2;
		const hit = document.elementFromPoint(x, y);
		return {x, y, hit: Boolean(hit && (e.contains(hit) || hit.contains(e)))};
	})()`, &at)
	if !at.Hit {
		p.t.Fatalf("%s is covered by something else", selector)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// keys presses keys one after another: single characters, or names.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	codes := map[string]int{"Escape": 27, "Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
	for _, k := range keys {
		down := map[string]any{"type": "keyDown", "key": k}
		if code, ok := codes[k]; ok {
			down["windowsVirtualKeyCode"], down["code"] = code, k
			if k == "Enter" {
				down["text"] = "\r"
			}
		} else {
			down["text"] = k
		}
		p.do("Input.dispatchKeyEvent", down)
		p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": k, "windowsVirtualKeyCode": codes[k]})
	}
}

func (p *tab) write(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text})
}

func (p *tab) size(width, height int) {
	p.t.Helper()
	scale := 1 // pictures are twice as fine, and take their time
	if os.Getenv("LATELY_SCREENSHOTS") != "" {
		scale = 2
	}
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600})
}

// media sets what the page learns of the wishes of its user, such as
// prefers-color-scheme.
func (p *tab) media(features ...string) {
	p.t.Helper()
	list := []map[string]string{}
	for _, f := range features {
		name, value, _ := strings.Cut(f, ": ")
		list = append(list, map[string]string{"name": name, "value": value})
	}
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": list})
}

// picture writes a screenshot to the folder of LATELY_SCREENSHOTS, if there is one.
func (p *tab) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("LATELY_SCREENSHOTS")
	if folder == "" {
		return
	}
	p.js(`new Promise((done) => { setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 600); })`, nil)
	var shot struct{ Data string }
	p.must(p.b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot))
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	p.must(err)
	p.must(os.MkdirAll(folder, 0o755))
	p.must(os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}
