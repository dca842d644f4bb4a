package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

const llmRules = `version: 1
fields:
  model: {}
limits:
  - {name: tokens, key: user, limit: 5000 per 1d}
`

// fakeModel answers as a model does: 42 tokens, at once or in a stream, an endless stream, or an error. left gets the
// end of an endless stream.
func fakeModel(t *testing.T) (url string, left <-chan bool) {
	t.Helper()
	ended := make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model   string
			Stream  bool
			Options struct {
				Usage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "Bearer upstream" || r.URL.Path != "/v1/chat/completions" || body.Stream != body.Options.Usage {
			t.Errorf("%s %s with %v: %+v, %v", r.Method, r.URL, r.Header, body, err)
		}
		switch {
		case body.Model == "broken":
			http.Error(w, `{"error":{"message":"broken"}}`, http.StatusInternalServerError)
			return
		case !body.Stream:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"message":{"content":"hello"}}],"usage":{"total_tokens":42}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; i < 3 || body.Model == "endless"; i++ {
			if _, err := fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hello \"}}]}\n\n"); err != nil || r.Context().Err() != nil {
				ended <- true
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"total_tokens\":42}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL, ended
}

// An llmProxy is examples/llm/proxy.py between a client and a model.
type llmProxy struct {
	*testing.T
	lately, url string
}

// ask sends a request to the proxy, and returns the answer with its body open.
func (p *llmProxy) ask(key, body string) *http.Response {
	p.Helper()
	r := must.Get(http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+"/v1/chat/completions", strings.NewReader(body)))(p)
	r.Header.Set("Authorization", "Bearer "+key)
	answer := must.Get(http.DefaultClient.Do(r))(p)
	return answer
}

// asked is ask, and reads the whole answer.
func (p *llmProxy) asked(key, body string) (status int, text string, header http.Header) {
	p.Helper()
	answer := p.ask(key, body)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		p.Error(err)
	}
	return answer.StatusCode, string(b), answer.Header
}

// used returns how many tokens a user has used.
func (p *llmProxy) used(user string) uint64 {
	p.Helper()
	answer := must.Get(http.Post(p.lately+"/v1/peek", "application/json", strings.NewReader(fmt.Sprintf(`{"rule":"tokens","key":%q}`, user))))(p)
	defer answer.Body.Close()
	var d struct{ Limit, Remaining uint64 }
	must.Do(p, json.NewDecoder(answer.Body).Decode(&d))
	if d.Remaining == 0 {
		return d.Limit
	}
	return d.Limit - d.Remaining - 1 // the outcome of the next event is not used
}

// wantUsed waits until a user has used n tokens: the proxy settles after its answer.
func (p *llmProxy) wantUsed(what, user string, ok func(uint64) bool) {
	p.Helper()
	if !eventually(func() bool { return ok(p.used(user)) }) {
		p.Errorf("%s: %s has used %d tokens", what, user, p.used(user))
	}
}

// python starts a script of examples/llm, and returns the text after "listening on ".
func python(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIP: there is no python3 here")
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "UPSTREAM_KEY=upstream", "PYTHONDONTWRITEBYTECODE=1")
	var log lines
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if strings.Contains(log.String(), "Traceback") {
			t.Errorf("%s", log.String())
		}
	})
	line, _ := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("%q does not listen: %q\n%s", args, line, log.String())
	}
	return addr
}

// TestConcurrentLLMProxy is a day of users with a budget behind examples/llm/proxy.py.
func TestConcurrentLLMProxy(t *testing.T) {
	dir := t.TempDir()
	model, left := fakeModel(t)
	s := serve(t, "--rules", writeRules(t, llmRules))
	appendTo(t, filepath.Join(dir, "keys.json"), `{"sk-ada": "ada", "sk-bob": "bob", "sk-eve": "eve"}`)
	p := &llmProxy{t, s.http, "http://" + python(t, filepath.Join("..", "..", "examples", "llm", "proxy.py"),
		"--keys", filepath.Join(dir, "keys.json"), "--upstream", model, "--lately", s.http, "--listen", "127.0.0.1:0")}
	is := func(n uint64) func(uint64) bool { return func(used uint64) bool { return used == n } }
	const ask = `"messages":[{"role":"user","content":"say hello"}]}`

	if status, text, _ := p.asked("sk-ada", `{"model":"m",`+ask); status != 200 || !strings.Contains(text, `"content":"hello"`) {
		t.Errorf("%d %s", status, text)
	}
	p.wantUsed("an answer", "ada", is(42))
	if status, text, _ := p.asked("sk-ada", `{"model":"m","stream":true,`+ask); status != 200 || strings.Count(text, "hello ") != 3 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%d %s", status, text)
	}
	p.wantUsed("a stream", "ada", is(84))
	if status, text, _ := p.asked("sk-ada", `{"model":"broken",`+ask); status != 500 || !strings.Contains(text, "broken") {
		t.Errorf("%d %s", status, text)
	}
	p.wantUsed("an error", "ada", is(84))
	for _, bad := range []struct {
		key, body string
		status    int
	}{{"sk-nobody", `{}`, 401}, {"sk-ada", `[]`, 400}, {"sk-ada", `{"max_tokens":"many"}`, 400}, {"sk-ada", `{`, 400}} {
		if status, text, _ := p.asked(bad.key, bad.body); status != bad.status {
			t.Errorf("%s: %d %s", bad.body, status, text)
		}
	}

	// More than is left is refused before the model is called, and the next request may still pass.
	status, text, header := p.asked("sk-ada", `{"model":"m","max_tokens":4950,`+ask)
	if status != 429 || header.Get("Retry-After") == "" || !strings.Contains(text, `"rate_limit_error"`) || !strings.Contains(text, "4916 of 5000") {
		t.Errorf("%d %v %s", status, header, text)
	}
	// More than the budget ever has: no waiting helps.
	if status, text, header := p.asked("sk-ada", `{"model":"m","max_tokens":6000,`+ask); status != 429 || header["Retry-After"] != nil {
		t.Errorf("%d %v %s", status, header, text)
	}
	if status, text, _ := p.asked("sk-ada", `{"model":"m","max_tokens":4000,`+ask); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	p.wantUsed("a refusal and an answer", "ada", is(126))

	// A client that leaves has used the tokens that it was sent, not the 1014 that were reserved,
	// and the model stops.
	answer := p.ask("sk-bob", `{"model":"endless","stream":true,`+ask)
	if _, err := io.ReadFull(answer.Body, make([]byte, 1000)); err != nil {
		t.Error(err)
	}
	answer.Body.Close()
	<-left
	p.wantUsed("a client that leaves", "bob", func(n uint64) bool { return n > 14 && n != 1014 })

	// Without Lately nothing goes to the model.
	s.kill()
	if status, text, _ := p.asked("sk-eve", `{"model":"m",`+ask); status != 503 {
		t.Errorf("%d %s", status, text)
	}
}

// litellmStub has what examples/llm/litellm_callback.py needs of LiteLLM, and calls its hooks as LiteLLM's proxy does.
const litellmStub = `
import asyncio, sys, types

class HTTPException(Exception):
    def __init__(self, status_code, detail=None, headers=None):
        self.status_code, self.detail, self.headers = status_code, detail, headers

for name, member in {"fastapi": ("HTTPException", HTTPException), "litellm": None, "litellm.integrations": None, "litellm.integrations.custom_logger": ("CustomLogger", object)}.items():
    sys.modules[name] = types.ModuleType(name)
    if member:
        setattr(sys.modules[name], *member)

sys.path.insert(0, sys.argv[1])
from litellm_callback import budget

async def call(user, tokens, used):
    key = types.SimpleNamespace(user_id=user, api_key="hash")
    data = {"model": "m", "messages": [{"role": "user", "content": "say hello"}], "max_tokens": tokens}
    try:
        data = await budget.async_pre_call_hook(key, None, data, "completion")
    except HTTPException as e:
        return print(e.status_code, e.detail, sorted(e.headers or {}))
    kwargs = {"litellm_params": {"metadata": data["metadata"]}}
    if hasattr(budget, "async_log_failure_event"): # an attempt that fails, before the one that is last
        await budget.async_log_failure_event(kwargs, None, None, None)
    if used is None:
        await budget.async_post_call_failure_hook(data, Exception(), key)
    else:
        await budget.async_log_success_event(kwargs, types.SimpleNamespace(usage=types.SimpleNamespace(total_tokens=used)), None, None)
    print("called")

async def main():
    await call("ada", 100, 42)
    await call("ada", 4000, None)
    await call("ada", 4950, 1)
    await call("ada", 6000, 1)

asyncio.run(main())
`

// TestLiteLLMCallback calls examples/llm/litellm_callback.py as LiteLLM does.
func TestLiteLLMCallback(t *testing.T) {
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIP: there is no python3 here")
	}
	s := serve(t, "--rules", writeRules(t, llmRules))
	p := &llmProxy{T: t, lately: s.http}
	cmd := exec.Command(program, "-c", litellmStub, filepath.Join("..", "..", "examples", "llm"))
	cmd.Env = append(os.Environ(), "LATELY_URL="+s.http, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasPrefix(out, []byte("called\ncalled\n429 the budget tokens has 4958 of 5000 tokens left")) || !bytes.Contains(out, []byte("['Retry-After']\n429 ")) || !bytes.HasSuffix(out, []byte("[]\n")) {
		t.Errorf("%v\n%s", err, out)
	}
	if n := p.used("ada"); n != 42 {
		t.Errorf("ada has used %d tokens", n)
	}
}
