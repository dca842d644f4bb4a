package access_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

func TestParse(t *testing.T) {
	a, b, c := secret("a"), secret("b"), secret("c")
	tokens := parse(t, "# a comment\r\n\n  \t \nread "+a+" grafana # who looks\r\n\tcheck\t"+b+"\t#\n"+
		"  admin sha256:"+strings.ToUpper(strings.TrimPrefix(access.Hash(c), "sha256:"))+"  a.b_c-d@e\nread x#"+a)
	want := []access.Identity{{access.Read, "grafana"}, {access.Check, "check"}, {access.Admin, "a.b_c-d@e"}, {access.Read, "read"}}
	if got := tokens.All(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, token := range []string{a, b, c, "x#" + a} {
		if role, name, _ := tokens.Role(token); (access.Identity{Role: role, Name: name}) != want[i] {
			t.Errorf("token %d is %v %s, want %v", i, role, name, want[i])
		}
	}
}

// Names of certificates have roles as tokens do, and names of their own or themselves in logs.
func TestParseCertificates(t *testing.T) {
	tokens := parse(t, "check cert:billing.example\nadmin cert:spiffe://example.org/ops ops\nread "+secret("a")+"\nread cert:sha256:x")
	if tokens.Len() != 1 || tokens.Certificates() != 3 {
		t.Errorf("%d tokens and %d certificates; want 1 and 3", tokens.Len(), tokens.Certificates())
	}
	for names, want := range map[string]access.Identity{
		"billing.example": {access.Check, "billing.example"}, "spiffe://example.org/ops": {access.Admin, "ops"}, "sha256:x": {access.Read, "sha256:x"},
		"unknown billing.example spiffe://example.org/ops": {access.Check, "billing.example"}, "Billing.example": {}, "cert:billing.example": {}, "": {},
	} {
		if who, ok := tokens.Certificate(strings.Split(names, " ")); who != want || ok != (want != access.Identity{}) {
			t.Errorf("%q is %v, %t; want %v", names, who, ok, want)
		}
	}
	if _, _, ok := tokens.Role("cert:billing.example"); ok {
		t.Error("the name of a certificate is a token")
	}
	if _, ok := (*access.Tokens)(nil).Certificate([]string{"billing.example"}); ok {
		t.Error("without tokens a certificate has a role")
	}
	one, two := tokens.With([]byte("one")), tokens.With([]byte("two"))
	if one.Equal(two) || one.Equal(tokens) || !one.Equal(tokens.With([]byte("one"))) || one.Certificates() != 3 || one.Len() != 1 {
		t.Error("tokens for other CAs are equal, or those for the same are not")
	}
	if tokens.Equal(parse(t, "check cert:billing.example\nadmin cert:spiffe://example.org/ops ops\nread "+secret("a")+"\nread cert:sha256:y")) {
		t.Error("tokens with another certificate are equal")
	}
}

// The names of a certificate are its URIs and DNS names, or without these the common name of its subject.
func TestCertificateNames(t *testing.T) {
	uri, _ := url.Parse("spiffe://example.org/billing")
	subject := pkix.Name{CommonName: "common"}
	for _, c := range []struct {
		cert x509.Certificate
		want []string
	}{
		{x509.Certificate{Subject: subject, URIs: []*url.URL{uri}, DNSNames: []string{"a.example", "b.example"}}, []string{"spiffe://example.org/billing", "a.example", "b.example"}},
		{x509.Certificate{Subject: subject, DNSNames: []string{"a.example"}}, []string{"a.example"}},
		{x509.Certificate{Subject: subject, EmailAddresses: []string{"a@example"}}, []string{"common"}},
		{x509.Certificate{}, nil},
	} {
		if got := access.CertificateNames(&c.cert); !slices.Equal(got, c.want) {
			t.Errorf("%v; want %v", got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	a := secret("a")
	many := ""
	for i := range access.MaxTokens + 1 {
		many += fmt.Sprintf("read %s%08d\n", strings.Repeat("x", 30), i)
	}
	for _, c := range []struct{ text, want string }{
		{"", "tokens has no token; want lines of the form: role token [name]"},
		{"# only\n", "has no token"},
		{"\n\n  root " + a, `tokens:3:3: role: "root": must be read, check or admin`},
		{a, "tokens:1:1: role: a word of 40 characters: must be"},
		{a + " admin", "tokens:1:1: role: a word of 40 characters: must be"},
		{"none " + a, `tokens:1:1: role: "none": must be`},
		{"read", "tokens:1:5: there is no token; want: role token [name]"},
		{" read # " + a, "tokens:1:6: there is no token"},
		{"read " + a[:31], "tokens:1:6: the token has 31 characters: must be 32 to 512"},
		{"read " + strings.Repeat("x", 513), "tokens:1:6: the token has 513 characters"},
		{"read \tümlaut" + a, "tokens:1:7: the token has other characters than the visible ones of ASCII"},
		{"read a\x00" + a, "tokens:1:6: the token has other characters"},
		{"read a\x7f" + a, "tokens:1:6: the token has other characters"},
		{"read sha256:" + a, "tokens:1:6: sha256: is followed by 40 characters; want 64 hexadecimal digits"},
		{"read sha256:" + strings.Repeat("g", 64), "is followed by 64 characters; want 64 hexadecimal digits"},
		{"read " + a + " two words", "tokens:1:51: there is more than role, token and name"},
		{"read " + a + " <b>", "tokens:1:47: a name is up to 64 letters"},
		{"read " + a + " " + strings.Repeat("n", 65), "tokens:1:47: a name is up to 64 letters"},
		{"read " + a + "\nread " + secret("b") + "\nadmin " + a, "tokens:3:7: this token is that of line 1"},
		{"read " + a + "\nadmin " + access.Hash(a), "tokens:2:7: this token is that of line 1"},
		{"read cert:", "tokens:1:6: cert: is followed by 0 characters; want 1 to 256 visible ones"},
		{"read cert:ümlaut", "tokens:1:6: cert: is followed by"},
		{"read cert:" + strings.Repeat("n", 257), "tokens:1:6: cert: is followed by 257 characters"},
		{"read cert:a\ncheck cert:b\nadmin cert:a b", "tokens:3:7: this certificate is that of line 1"},
		{many, "tokens:257:6: there are more than 256 tokens"},
		{strings.Repeat("#", 1<<20+1), "too long (max 1048576 bytes)"},
	} {
		tokens, err := access.Parse(strings.NewReader(c.text), "tokens")
		if err == nil || !strings.Contains(err.Error(), c.want) || tokens != nil {
			t.Errorf("%.60q: %v, %v; want %s", c.text, tokens, err, c.want)
		} else if strings.Contains(err.Error(), a[:20]) {
			t.Errorf("%.60q: the error shows the token: %v", c.text, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	if _, err := access.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := access.Load(dir); err == nil {
		t.Error("a folder was read")
	}
	must.Do(t, os.WriteFile(path, []byte("read "+secret("r")), 0o600))
	if tokens, err := access.Load(path); err != nil || tokens.Len() != 1 {
		t.Errorf("%v, %v", tokens, err)
	}
	if runtime.GOOS == "windows" {
		return // no modes here
	}
	for _, mode := range []fs.FileMode{0o604, 0o601, 0o602, 0o644, 0o777} {
		must.Do(t, os.Chmod(path, mode))
		if _, err := access.Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) || !strings.Contains(err.Error(), fmt.Sprintf("%04o", mode)) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	for _, mode := range []fs.FileMode{0o600, 0o400, 0o440, 0o660} { // the last two are of our group, as in Kubernetes
		must.Do(t, os.Chmod(path, mode))
		if _, err := access.Load(path); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("SKIP a group that the process is not in: only root can give a file to one")
	}
	must.Do(t, os.Chown(path, -1, 54_321))
	for _, mode := range []fs.FileMode{0o640, 0o620, 0o610} {
		must.Do(t, os.Chmod(path, mode))
		if _, err := access.Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %v of another group: %v", mode, err)
		}
	}
}

// FuzzParse reads any text. Accepted files are valid, no error shows a possible token, and lines that are accepted alone
// are accepted together.
func FuzzParse(f *testing.F) {
	f.Add("read " + secret("r") + " name # comment\n\nadmin " + access.Hash(secret("a")))
	f.Add("check\t" + secret("c") + "\r\n")
	f.Add("read cert:spiffe://example.org/a name\ncheck cert:b # comment\n")
	f.Add("x y z")
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := access.Parse(strings.NewReader(text), "tokens")
		if err != nil {
			for word := range strings.FieldsSeq(text) {
				if len(word) >= access.MinToken && strings.Contains(err.Error(), word) {
					t.Errorf("the error shows a word of %d characters: %v", len(word), err)
				}
			}
			return
		}
		if tokens.Len()+tokens.Certificates() == 0 || tokens.Len() > access.MaxTokens || tokens.Len() != len(tokens.All()) {
			t.Errorf("%d tokens", tokens.Len())
		}
		n := 0
		for line := range strings.Lines(text) {
			word := strings.FieldsFunc(strings.TrimRight(line, "\r\n"), func(r rune) bool { return r == ' ' || r == '\t' })
			if len(word) == 0 || word[0][0] == '#' {
				continue
			}
			if cert, ok := strings.CutPrefix(word[1], "cert:"); ok {
				if who, ok := tokens.Certificate([]string{cert}); !ok || who.Role.String() != word[0] {
					t.Errorf("line %q is %v, %t", line, who, ok)
				}
				continue
			}
			want := tokens.All()[n]
			role, name, ok := tokens.Role(word[1])
			if hashed := strings.HasPrefix(word[1], "sha256:"); ok == hashed || ok && (access.Identity{Role: role, Name: name}) != want {
				t.Errorf("line %q is %v %v %v, want %v", line, role, name, ok, want)
			}
			if want.Role.String() != word[0] {
				t.Errorf("line %q is %v", line, want)
			}
			n++
		}
		if n != tokens.Len() {
			t.Errorf("%d tokens of %d lines", tokens.Len(), n)
		}
	})
}

// TestReadToken reads the token to send from files of both forms.
func TestReadToken(t *testing.T) {
	const admin, read, other = "admin-token-of-more-than-32-characters", "read-token-of-more-than-32-characters", "other-read-token-of-more-than-32-characters"
	hashed := "admin sha256:" + strings.Repeat("ab", 32) + "\n"
	for _, c := range []struct {
		text, want string
		need       access.Role
	}{
		{"  plain\n", "plain", access.Admin},
		{"admin " + admin + " ops\n# a comment\nread " + read + "\nread " + other + "\n", read, access.Read},
		{"read " + read + "\nadmin " + admin + "\n", admin, access.Check},
		{"read " + read + "\nadmin " + admin + "\n", admin, access.Admin},
		{"admin " + admin + "\nread " + read + "\n", read, access.Read},
		{"read " + read + "\n", read, access.Admin}, // the server's answer names the role that is missing
		{hashed + "read " + read + "\n", read, access.Admin},
		{hashed + "check sha256:" + strings.Repeat("cd", 32) + "\n", "only hashes of tokens, or names of certificates: must have a token to send", access.Read},
		{"admin short\n", ":1:7: the token has 5 characters", access.Read},
		{"", "has no token", access.Read},
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		must.Do(t, os.WriteFile(path, []byte(c.text), 0o600))
		token, err := access.ReadToken(path, c.need)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && token != c.want {
			t.Errorf("%q for %v: %q, %v; want %q", c.text, c.need, token, err, c.want)
		}
	}
	if _, err := access.ReadToken(filepath.Join(t.TempDir(), "none"), access.Read); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
