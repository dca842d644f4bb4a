package access_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

func parse(t *testing.T, text string) *access.Tokens {
	t.Helper()
	return must.Get(access.Parse(strings.NewReader(text), "tokens"))(t)
}

func TestRole(t *testing.T) {
	tokens := parse(t, "read "+secret("r")+" grafana\ncheck "+secret("c")+"\nadmin "+access.Hash(secret("a"))+" ops@example\n")
	for _, c := range []struct {
		token string
		role  access.Role
		name  string
	}{
		{secret("r"), access.Read, "grafana"},
		{secret("c"), access.Check, "check"},
		{secret("a"), access.Admin, "ops@example"},
		{secret("x"), access.None, ""},
		{"", access.None, ""},
		{secret("a")[:39], access.None, ""},
		{secret("a") + "x", access.None, ""},
		{secret("a") + "\x00", access.None, ""},
		{access.Hash(secret("a")), access.None, ""}, // the file alone contains no token
		{strings.Repeat("x", access.MaxToken+1), access.None, ""},
	} {
		role, name, ok := tokens.Role(c.token)
		if role != c.role || name != c.name || ok != (c.role != access.None) {
			t.Errorf("%.50q is %v %q %v, want %v %q", c.token, role, name, ok, c.role, c.name)
		}
	}
	longest := strings.Repeat("x", access.MaxToken)
	if role, _, _ := parse(t, "read "+longest).Role(longest); role != access.Read {
		t.Errorf("the longest token is %v", role)
	}
}

// TestEmptyTokens checks nil and empty Tokens, which give no role.
func TestEmptyTokens(t *testing.T) {
	for _, tokens := range []*access.Tokens{nil, {}} {
		if role, name, ok := tokens.Role(""); ok || role != access.None || name != "" {
			t.Errorf("%v %q %v", role, name, ok)
		}
		if tokens.Len() != 0 || tokens.All() != nil {
			t.Errorf("%d tokens, %v", tokens.Len(), tokens.All())
		}
	}
}

// TestNothingPrintsATokenOrItsHash prints tokens in all ways.
func TestNothingPrintsATokenOrItsHash(t *testing.T) {
	tokens := parse(t, "admin "+secret("a"))
	hash := strings.TrimPrefix(access.Hash(secret("a")), "sha256:")
	out := fmt.Sprintf("%v %+v %#v %s %q", tokens, tokens, tokens, tokens, tokens)
	if strings.Contains(out, secret("a")) || strings.Contains(out, hash) || strings.Contains(out, "hashes") {
		t.Errorf("printed: %s", out)
	}
	if want := "1 tokens"; !strings.HasPrefix(out, want) {
		t.Errorf("printed %s, want %s", out, want)
	}
}

// TestRoleDoesNotAllocate looks up a token, as is done for every request.
func TestRoleDoesNotAllocate(t *testing.T) {
	tokens := parse(t, "read "+secret("r"))
	for _, token := range []string{secret("r"), secret("x")} {
		if n := testing.AllocsPerRun(100, func() { tokens.Role(token) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// branchesOf returns the parts of a function whose time may depend on the compared values: anything but one loop without a
// way out of it, and calls of crypto/subtle.
func branchesOf(f *ast.FuncDecl) (why []string) {
	depth, calls := 0, 0
	var walk func(n ast.Node) bool
	walk = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			depth++
			ast.Inspect(n.Body, walk)
			depth--
			return false
		case *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.BranchStmt, *ast.ForStmt, *ast.SelectStmt, *ast.FuncLit, *ast.DeferStmt:
			why = append(why, fmt.Sprintf("%T", n))
		case *ast.ReturnStmt:
			if depth > 0 {
				why = append(why, "return within the loop")
			}
		case *ast.BinaryExpr:
			why = append(why, n.Op.String())
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "subtle" {
				calls++
			} else {
				why = append(why, "a call of another function")
			}
		}
		return true
	}
	ast.Inspect(f.Body, walk)
	if calls == 0 {
		why = append(why, "no call of crypto/subtle")
	}
	return why
}

func function(t *testing.T, source, name string) *ast.FuncDecl {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), "", source, 0))(t)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			return f
		}
	}
	t.Fatalf("no function %s", name)
	return nil
}

// TestComparingIsConstantInTime reads the source, since a measurement would depend on the load of the machine. All that
// depends on the token is in the one function.
func TestComparingIsConstantInTime(t *testing.T) {
	source := must.Get(os.ReadFile("tokens.go"))(t)
	if why := branchesOf(function(t, string(source), "place")); len(why) > 0 {
		t.Errorf("place has %v", why)
	}
	for _, broken := range []string{
		"for i := range hs { if subtle.ConstantTimeCompare(hs[i][:], h[:]) == 1 { return i, 1 } }",
		"for i := range hs { found |= subtle.ConstantTimeCompare(hs[i][:], h[:]); if found == 1 { break } }",
		"for i := range hs { at = subtle.ConstantTimeSelect(same(hs[i], h), i, at) }",
		"for i := 0; found == 0; i++ { found = subtle.ConstantTimeCompare(hs[i][:], h[:]) }",
		"for i := range hs { ok := hs[i] == h; _ = ok }",
	} {
		if why := branchesOf(function(t, "package p\nfunc place() {"+broken+"}", "place")); len(why) == 0 {
			t.Errorf("nothing is found in %s", broken)
		}
	}
}

func BenchmarkRole(b *testing.B) {
	var text strings.Builder
	for i := range 8 {
		fmt.Fprintf(&text, "read %s\n", secret(fmt.Sprint(i)))
	}
	tokens := must.Get(access.Parse(strings.NewReader(text.String()), "tokens"))(b)
	last := secret("7")
	for b.Loop() {
		tokens.Role(last)
	}
}

func TestEqual(t *testing.T) {
	parse := func(text string) *access.Tokens {
		return must.Get(access.Parse(strings.NewReader(text), "tokens"))(t)
	}
	text := "read " + secret("r") + "\nadmin " + secret("a") + " ada\n"
	all := parse(text)
	for what, other := range map[string]*access.Tokens{
		"read again":      parse("# the same\n" + text),
		"with its hash":   parse(strings.Replace(text, secret("r"), access.Hash(secret("r")), 1)),
		"another token":   parse(strings.Replace(text, secret("r"), secret("q"), 1)),
		"another role":    parse(strings.Replace(text, "read", "check", 1)),
		"another name":    parse(strings.Replace(text, "ada", "eve", 1)),
		"one more":        parse(text + "read " + secret("s")),
		"one less":        parse("read " + secret("r")),
		"none":            nil,
		"none among them": {},
	} {
		same := what == "read again" || what == "with its hash"
		if all.Equal(other) != same || other.Equal(all) != same {
			t.Errorf("%s: equal is %v and %v, want %v", what, all.Equal(other), other.Equal(all), same)
		}
	}
	var none *access.Tokens
	if !none.Equal(nil) || none.Equal(new(access.Tokens)) || !new(access.Tokens).Equal(new(access.Tokens)) || !all.Equal(all) {
		t.Error("what is the same is not equal, or none at all equals nobody's")
	}
}
