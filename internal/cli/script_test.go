package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	_ "time/tzdata" // the machine that tests may have no time zone database

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/journaltest"
)

// update rewrites the expected outputs in the scripts.
var update = flag.Bool("update", false, "rewrite what the scripts expect")

// TestMain makes the program of the tests the command lately in PATH, for tests that need a process.
func TestMain(m *testing.M) {
	journaltest.Main()
	if filepath.Base(os.Args[0]) == "lately" {
		os.Exit(Main())
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	bin, err := os.MkdirTemp("", "lately")
	if err != nil {
		panic(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "lately")); err != nil {
		panic(err)
	}
	os.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}

// TestScripts runs the scripts of testdata, one for each thing that the command
// does; each begins with why.
func TestScripts(t *testing.T) {
	testscript.RunT(sequential{t}, scripts("testdata"))
}

// A sequential test runs scripts one after another, since lately runs in the working directory of the process.
type sequential struct{ *testing.T }

func (sequential) Parallel()     {}
func (sequential) Verbose() bool { return testing.Verbose() }

func (s sequential) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(sequential{t}) })
}

// TestServerScripts runs the scripts of commands that need a server. Each has one of its own, at $ADDR, with the script's
// rules.yaml and, if there are any, its tokens.
func TestServerScripts(t *testing.T) {
	params := scripts(filepath.Join("testdata", "server"))
	params.Setup = func(env *testscript.Env) error {
		args := []string{"--rules", filepath.Join(env.WorkDir, "rules.yaml"), "--rules-poll", "never"}
		tokens := filepath.Join(env.WorkDir, "tokens")
		if err := os.Chmod(tokens, 0o600); err == nil {
			args = append(args, "--token-file", tokens)
		}
		env.Setenv("ADDR", serve(t, args...).http)
		return nil
	}
	params.Cmds["take"] = takeKey
	testscript.RunT(sequential{t}, params)
}

// scripts returns how the scripts of a directory are run.
func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:           dir,
		UpdateScripts: *update,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":    exitCode,
			"hexfile": hexFile,
			"json":    jsonValue,
			"lately":  success,
			"plain":   plainBytes,
		},
	}
}

// success runs lately, which must succeed: lately args...
func success(ts *testscript.TestScript, neg bool, args []string) {
	if code := inProcess(ts, args); neg || code != exitOK {
		ts.Fatalf("exit code %d, want 0; for another: code N lately args...", code)
	}
}

// inProcess runs lately in this process, in a seventh of the time of a process of its own. Commands with standard input or
// variables are run as a process: exec lately args...
func inProcess(ts *testscript.TestScript, args []string) int {
	dir, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	code := run(context.Background(), args, strings.NewReader(""), ts.Stdout(), ts.Stderr())
	ts.Check(os.Chdir(dir))
	return code
}

// exitCode compares an exit code: code N lately args..., or code N exec command args...
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: code N lately args..., or code N exec command args...")
	}
	want, got := args[0], "0"
	switch args[1] {
	case "lately":
		got = strconv.Itoa(inProcess(ts, args[2:]))
	case "exec":
		if err := ts.Exec(args[2], args[3:]...); err != nil {
			_, got, _ = strings.Cut(err.Error(), "exit status ")
		}
	}
	if got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
}

// hexFile writes a file of the bytes that a Go string has: hexfile FILE TEXT.
func hexFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: hexfile FILE TEXT")
	}
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// takeKey counts events of a key under a rule of the server: take N RULE KEY, where KEY is a
// Go string without its quotes.
func takeKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: take N RULE KEY")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	key, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	c, err := client.New(ts.Getenv("ADDR"), client.Config{})
	ts.Check(err)
	defer c.Close()
	for range n {
		_, err := c.Take(context.Background(), args[1], 1, key)
		ts.Check(err)
	}
}

// jsonValue compares a value in the JSON on standard output with a text:
// json PATH VALUE, where PATH has keys and indexes with '.' between them.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json PATH VALUE")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.UseNumber()
	var v any
	ts.Check(dec.Decode(&v))
	for key := range strings.SplitSeq(args[0], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			ts.Check(err)
			v = any(nil)
			if i < len(in) {
				v = in[i]
			}
		default:
			v = nil
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	ts.Check(enc.Encode(v))
	if got := strings.TrimSpace(out.String()); (strings.Trim(got, `"`) == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// plainBytes fails when standard output or error has a control byte but for the
// end of a line, or a character that turns the direction of writing.
func plainBytes(ts *testscript.TestScript, neg bool, _ []string) {
	raw := ""
	for _, name := range []string{"stdout", "stderr"} {
		for _, r := range ts.ReadFile(name) {
			if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == '\ufffd' {
				raw += strconv.QuoteRune(r)
			}
		}
	}
	if (raw == "") == neg {
		ts.Fatalf("control characters on the terminal: %s", raw)
	}
}
