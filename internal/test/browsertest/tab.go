package browsertest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Tab is one page of a browser, with cookies and storage of its own.
type Tab struct {
	b       *Browser
	t       *testing.T
	session string

	mu    sync.Mutex
	wrong []string // what the page complained of
	asked []string // the addresses that it requested
}

// Open opens url in a tab of that size.
func (b *Browser) Open(t *testing.T, url string, width, height int) *Tab {
	t.Helper()
	p := &Tab{b: b, t: t}
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
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		p.Do(domain+".enable", nil)
	}
	p.Do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	p.Size(width, height)
	p.Do("Page.navigate", map[string]any{"url": url})
	p.Wait(`document.readyState === 'complete' && document.querySelector('main')?.childElementCount > 0`)
	return p
}

func (p *Tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// Do calls a method of the DevTools protocol.
func (p *Tab) Do(method string, params any) {
	p.t.Helper()
	p.must(p.b.call(p.session, method, params, nil))
}

// happened records faults in the page: exceptions, errors on its console, what its policy blocked, requests that failed.
func (p *Tab) happened(m message) {
	var e struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry   struct{ Level, Text, URL string }
		Request struct{ URL string }
	}
	json.Unmarshal(m.Params, &e)
	text := ""
	switch {
	case m.Method == "Network.requestWillBeSent":
		p.mu.Lock()
		p.asked = append(p.asked, e.Request.URL)
		p.mu.Unlock()
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

// Complaints returns the faults since the last call.
func (p *Tab) Complaints() []string {
	p.JS(`1`, nil) // earlier events arrive before the answer to this
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.wrong
	p.wrong = nil
	return w
}

// Complaint is Complaints for a page with a fault: it waits for one. Faults of the network and the policy are reported a
// while after their cause.
func (p *Tab) Complaint() []string {
	for end := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		if w := p.Complaints(); len(w) > 0 || time.Now().After(end) {
			return w
		}
	}
}

// Requests returns the addresses that the page has requested, its own included.
func (p *Tab) Requests() []string {
	p.JS(`1`, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Clean fails the test if anything was wrong.
func (p *Tab) Clean() {
	p.t.Helper()
	for _, w := range p.Complaints() {
		p.t.Errorf("the page complains: %s", w)
	}
}

// JS evaluates an expression, waits for it if it is a promise, and puts its value
// into v, if not nil.
func (p *Tab) JS(expression string, v any) {
	p.t.Helper()
	p.must(p.Try(expression, v))
}

// Try is JS, and returns errors such as exceptions.
func (p *Tab) Try(expression string, v any) error {
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

// Wait waits until an expression holds.
func (p *Tab) Wait(expression string) {
	p.t.Helper()
	var ok bool
	look := `new Promise((done) => {
		const end = performance.now() + 45e3;
		const look = () => {
			let is = false;
			try { is = Boolean(` + expression + `); } catch {}
			if (is || performance.now() > end) done(is);
			else setTimeout(look, 15);
		};
		look();
	})`
	err := p.Try(look, &ok)
	for range 3 { // a page that is left takes the question with it
		if err == nil || !strings.Contains(err.Error(), "navigated") && !strings.Contains(err.Error(), "context") {
			break
		}
		err = p.Try(look, &ok)
	}
	p.must(err)
	if !ok {
		var text string
		p.JS(`location.hash + '\n' + document.body.innerText.slice(0, 3000)`, &text)
		p.t.Fatalf("never came true: %s\nthe page complains: %q\nthe page:\n%s", expression, p.Complaints(), text)
	}
}

// Click presses the mouse in the middle of the one element that selector finds.
func (p *Tab) Click(selector string) {
	p.t.Helper()
	s, _ := json.Marshal(selector)
	p.Wait(`document.querySelector(` + string(s) + `)?.getBoundingClientRect().width`)
	var at struct {
		X, Y float64
		Hit  bool
	}
	p.JS(`(() => {
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
		p.Do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// Keys presses keys one after another: single characters, or names.
func (p *Tab) Keys(keys ...string) {
	p.t.Helper()
	codes := map[string]int{"Escape": 27, "Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35}
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
		p.Do("Input.dispatchKeyEvent", down)
		p.Do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": k, "windowsVirtualKeyCode": codes[k]})
	}
}

// Write inserts text where the focus is.
func (p *Tab) Write(text string) {
	p.t.Helper()
	p.Do("Input.insertText", map[string]any{"text": text})
}

// Size makes the window so large. If it is less than 600 wide, it is a phone's.
func (p *Tab) Size(width, height int) {
	p.t.Helper()
	scale := 1 // pictures are twice as fine, and take their time
	if os.Getenv("LATELY_SCREENSHOTS") != "" {
		scale = 2
	}
	p.Do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600})
}

// Media sets preferences of the user that the page can read, such as
// prefers-color-scheme.
func (p *Tab) Media(features ...string) {
	p.t.Helper()
	list := []map[string]string{}
	for _, f := range features {
		name, value, _ := strings.Cut(f, ": ")
		list = append(list, map[string]string{"name": name, "value": value})
	}
	p.Do("Emulation.setEmulatedMedia", map[string]any{"features": list})
}

// Picture writes a screenshot to the folder of LATELY_SCREENSHOTS, if there is one.
func (p *Tab) Picture(name string) {
	p.t.Helper()
	folder := os.Getenv("LATELY_SCREENSHOTS")
	if folder == "" {
		return
	}
	p.JS(`new Promise((done) => { setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 600); })`, nil)
	var shot struct{ Data string }
	p.must(p.b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot))
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	p.must(err)
	p.must(os.MkdirAll(folder, 0o755))
	p.must(os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}
