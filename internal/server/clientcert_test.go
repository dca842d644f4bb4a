package server

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// An authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	cert := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true})
	a.key, a.pem = cert.PrivateKey.(*ecdsa.PrivateKey), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	a.cert, _ = x509.ParseCertificate(cert.Certificate[0])
	return a
}

// sign returns a certificate like c, by default one of a client that is valid now.
func (a *authority) sign(c *x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	c.SerialNumber, c.NotBefore = big.NewInt(1), time.Now().Add(-24*time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if c.ExtKeyUsage == nil && !c.IsCA {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer))(a.t)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// named returns the certificate of a client with that common name and these DNS names.
func (a *authority) named(common string, dns ...string) *tls.Certificate {
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: common}, DNSNames: dns})
}

// A mutual is a server with TLS that requests client certificates.
type mutual struct {
	*Server
	t               *testing.T
	dir, resp, http string
	roots           *x509.CertPool
	log             *safeBuffer
}

const mutualTokens = `read cert:reader
check cert:billing.example
admin cert:spiffe://example.org/ops ops
check token-of-check-token-of-check-token-of-check
admin token-of-admin-token-of-admin-token-of-admin
`

func startMutual(t *testing.T, ca *authority) *mutual {
	t.Helper()
	m := &mutual{t: t, dir: t.TempDir(), roots: x509.NewCertPool(), log: new(safeBuffer)}
	own, ownPEM := newCertificate(t)
	key := must.Get(x509.MarshalPKCS8PrivateKey(own.PrivateKey))(t)
	m.write("cert", string(ownPEM))
	m.write("key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	m.write("ca", string(ca.pem))
	m.write("tokens", mutualTokens)
	m.write("rules.yaml", deployRules)
	m.roots.AppendCertsFromPEM(ownPEM)
	file := func(name string) string { return filepath.Join(m.dir, name) }
	m.Server, _ = startedWith(t, Config{
		RulesFiles: []string{file("rules.yaml")}, TokenFile: file("tokens"), TLSCert: file("cert"), TLSKey: file("key"), TLSClientCA: file("ca"),
	}, slog.New(slog.NewTextHandler(m.log, nil)))
	m.resp, m.http = m.Addresses()
	return m
}

func (m *mutual) write(name, text string) {
	m.t.Helper()
	must.Do(m.t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600))
}

// config is the TLS of a client with that certificate, or without.
func (m *mutual) config(cert *tls.Certificate) *tls.Config {
	c := &tls.Config{RootCAs: m.roots}
	if cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil } // whatever CAs the server names
	}
	return c
}

// A speaker is a connection to the RESP listener.
type speaker struct {
	net.Conn
	replies *bufio.Reader
}

func (m *mutual) dial(cert *tls.Certificate) *speaker {
	m.t.Helper()
	conn := must.Get(tls.Dial("tcp", m.resp, m.config(cert)))(m.t)
	m.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs has failed
	return &speaker{conn, bufio.NewReader(conn)}
}

// say sends a command, and returns the first line of the reply, or the error.
func (s *speaker) say(command string) string {
	_, _ = io.WriteString(s, command+"\r\n") // after an error, the alert can still be read
	line, err := s.replies.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	_, _ = s.replies.Discard(s.replies.Buffered()) // the elements of a decision, sent with their number
	return strings.TrimSpace(line)
}

// get sends an HTTP request, and returns status and body, or the error.
func (m *mutual) get(cert *tls.Certificate, two bool, method, path, token string) string {
	m.t.Helper()
	transport := &http.Transport{TLSClientConfig: m.config(cert), ForceAttemptHTTP2: two}
	defer transport.CloseIdleConnections()
	body := `{"rule":"per-client","key":"192.0.2.9"}`
	if path == "/v1/bans" {
		body = `{"rule":"per-client","key":["192.0.2.8"],"for":"1h"}`
	}
	r := must.Get(http.NewRequest(method, "https://"+m.http+path, strings.NewReader(body)))(m.t)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer w.Body.Close()
	if two != (w.ProtoMajor == 2) {
		m.t.Errorf("the protocol is %s", w.Proto)
	}
	answer, _ := io.ReadAll(w.Body)
	return fmt.Sprint(w.StatusCode, " ", string(answer))
}

// The role of a certificate limits what its client may do, over RESP and HTTP. A token counts before it.
func TestClientCertificates(t *testing.T) {
	const check, admin = "token-of-check-token-of-check-token-of-check", "token-of-admin-token-of-admin-token-of-admin"
	ca := newAuthority(t)
	m := startMutual(t, ca)
	spiffe := &url.URL{Scheme: "spiffe", Host: "example.org", Path: "/ops"}
	ops := ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "reader"}, URIs: []*url.URL{spiffe}})
	for name, c := range map[string]struct {
		cert                       *tls.Certificate
		token                      string
		rules, take, ban           string // over RESP
		status, httpTake, httpBans string
	}{
		"reader by common name": {ca.named("reader"), "", "*", "-NOPERM take needs the role check", "-NOPERM", "200", "403", "403"},
		"checker by DNS name":   {ca.named("reader", "billing.example"), "", "*", "*7", "-NOPERM ban needs the role admin", "200", "200", "403"},
		"admin by URI":          {ops, "", "*", "*7", "+OK", "200", "200", "201"},
		"the second name":       {ca.named("", "unknown.example", "billing.example"), "", "*", "*7", "-NOPERM", "200", "200", "403"},
		"a common name besides": {
			ca.named("reader", "unknown.example"), "", "-NOAUTH authentication required: the certificate has no role: add a line to the token file of the server, with a role and cert: before one of its names (unknown.example)",
			"-NOAUTH", "-NOAUTH", "401", "401", "401",
		},
		"none":                       {nil, "", "-NOAUTH", "-NOAUTH", "-NOAUTH", "401", "401", "401"},
		"none, with a token":         {nil, check, "*", "*7", "-NOPERM", "200", "200", "403"},
		"unknown, with a token":      {ca.named("unknown"), check, "*", "*7", "-NOPERM", "200", "200", "403"},
		"reader, with a token":       {ca.named("reader"), admin, "*", "*7", "+OK", "200", "200", "201"},
		"admin, with a lesser token": {ops, check, "*", "*7", "-NOPERM", "200", "200", "403"},
	} {
		t.Run(name, func(t *testing.T) {
			s := m.dial(c.cert)
			if c.token != "" {
				if got := s.say("AUTH " + c.token); got != "+OK" {
					t.Errorf("AUTH: %s", got)
				}
			}
			for command, want := range map[string]string{"BANS": c.rules, "TAKE per-client 192.0.2.1": c.take, "BAN per-client 192.0.2.2 1h": c.ban} {
				if got := s.say(command); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s; want %s", command, got, want)
				}
			}
			for _, two := range []bool{false, true} {
				for _, x := range [][3]string{{"GET", "/v1/status", c.status}, {"POST", "/v1/take", c.httpTake}, {"POST", "/v1/bans", c.httpBans}, {"GET", "/healthz", "200"}} {
					if got := m.get(c.cert, two, x[0], x[1], c.token); !strings.HasPrefix(got, x[2]) {
						t.Errorf("%s %s: %s; want %s", x[0], x[1], got, x[2])
					}
				}
			}
		})
	}
	unknown := m.get(ca.named("unknown"), false, "GET", "/v1/status", "")
	if !strings.Contains(unknown, "the certificate has no role") || !strings.Contains(unknown, "(unknown)") {
		t.Errorf("a certificate without a role: %s", unknown)
	}
	if got := m.get(ops, false, "GET", "/v1/status", strings.Repeat("x", 40)); !strings.HasPrefix(got, "401") {
		t.Errorf("a certificate with an unknown token: %s", got)
	}
	s := m.dial(ops)
	for _, x := range [][2]string{{"AUTH " + strings.Repeat("x", 40), "-WRONGPASS"}, {"AUTH " + check, "+OK"}, {"BAN per-client 192.0.2.2 1h", "-NOPERM"}, {"RESET", "+RESET"}, {"BAN per-client 192.0.2.2 1h", "+OK"}} {
		if got := s.say(x[0]); !strings.HasPrefix(got, x[1]) {
			t.Errorf("%s: %s; want %s", x[0], got, x[1])
		}
	}
	for _, want := range []string{"login rejected: the certificate has no role", "certificate=unknown.example", "by=ops", "by=admin"} {
		if !strings.Contains(m.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, m.log)
		}
	}
}

// Certificates that no CA of the server has signed, that are too old or of servers are rejected, with
// the reason in the alert for the client and in the log.
func TestRejectedClientCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	m := startMutual(t, ca)
	expired := ca.sign(&x509.Certificate{DNSNames: []string{"billing.example"}, NotAfter: time.Now().Add(-time.Hour)})
	server := ca.sign(&x509.Certificate{DNSNames: []string{"billing.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	for _, c := range []struct {
		what          string
		cert          *tls.Certificate
		alert, logged string
	}{
		{"another CA", other.named("", "billing.example"), "unknown certificate authority", "certificate signed by unknown authority"},
		{"expired", expired, "expired certificate", "certificate has expired"},
		{"of a server", server, "bad certificate", "incompatible key usage"},
	} {
		before := strings.Count(m.log.String(), c.logged)
		for where, got := range map[string]string{"RESP": m.dial(c.cert).say("PING"), "HTTP/1": m.get(c.cert, false, "GET", "/healthz", ""), "HTTP/2": m.get(c.cert, true, "GET", "/healthz", "")} {
			if where == "RESP" && !strings.Contains(got, c.alert) || strings.HasPrefix(got, "2") {
				t.Errorf("%s over %s: %s; want %s", c.what, where, got, c.alert)
			}
		}
		eventually(t, c.what+" is logged", func() bool { return strings.Count(m.log.String(), c.logged) == before+3 })
	}
	if strings.Count(m.log.String(), "peer=127.0.0.1 ") != 9 {
		t.Errorf("the log does not have the address in all lines:\n%s", m.log)
	}
}

// A reload applies other roles and CAs: connections by removed ones are closed.
func TestClientCertificatesReloaded(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	m := startMutual(t, first)
	old, successor := first.named("", "billing.example"), second.named("", "billing.example")
	take := func(s *speaker) string { return s.say("TAKE per-client 192.0.2.1") }

	connected, anonymous := m.dial(old), m.dial(first.named("later"))
	if got := take(connected); got != "*7" {
		t.Fatalf("before the reload: %s", got)
	}
	if got := take(anonymous); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("a name without a line: %s", got)
	}
	m.write("tokens", strings.Replace(mutualTokens, "cert:billing.example", "cert:later", 1))
	must.Do(t, m.Reload())
	if got := take(connected); !strings.Contains(got, "EOF") {
		t.Errorf("a name that was revoked, on the open connection: %s", got)
	}
	if got := take(m.dial(old)); !strings.HasPrefix(got, "-NOAUTH authentication required: the certificate has no role") {
		t.Errorf("a name that was revoked: %s", got)
	}
	if got := take(anonymous); got != "*7" {
		t.Errorf("a name that was added, on the open connection: %s", got)
	}

	m.write("tokens", mutualTokens)
	m.write("ca", "no certificate")
	if err := m.Reload(); err == nil || !strings.Contains(err.Error(), "tls-client-ca: "+m.dir+"/ca: must have a certificate in PEM form") {
		t.Errorf("a damaged file of CAs: %v", err)
	}
	if got := take(m.dial(first.named("later"))); got != "*7" {
		t.Errorf("after a reload that failed: %s", got)
	}

	m.write("ca", string(first.pem))
	must.Do(t, m.Reload())
	connected = m.dial(old)
	if got := take(connected); got != "*7" {
		t.Fatalf("%s", got)
	}
	m.write("ca", string(second.pem))
	must.Do(t, m.Reload())
	if got := take(connected); !strings.Contains(got, "EOF") {
		t.Errorf("by a CA that is gone, on the open connection: %s", got)
	}
	if got := take(m.dial(old)); !strings.Contains(got, "unknown certificate authority") {
		t.Errorf("by a CA that is gone: %s", got)
	}
	if got := take(m.dial(successor)); got != "*7" {
		t.Errorf("by the new CA: %s", got)
	}
}

// A session that began under earlier CAs is not resumed.
func TestClientCertificatesAreNotResumed(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	m := startMutual(t, first)
	config := m.config(first.named("", "billing.example"))
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	try := func() string {
		conn, err := tls.Dial("tcp", m.resp, config)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		if conn.ConnectionState().DidResume {
			t.Error("a session was resumed")
		}
		return (&speaker{conn, bufio.NewReader(conn)}).say("TAKE per-client 192.0.2.1")
	}
	for range 2 {
		if got := try(); got != "*7" {
			t.Fatal(got)
		}
	}
	m.write("ca", string(second.pem))
	must.Do(t, m.Reload())
	if got := try(); !strings.Contains(got, "unknown certificate authority") {
		t.Errorf("a session by a CA that is gone: %s", got)
	}
}

// The certificates of a token file without the CAs of clients have no effect, and the log has a warning.
func TestCertificatesWithoutCA(t *testing.T) {
	var log safeBuffer
	path := filepath.Join(t.TempDir(), "tokens")
	must.Do(t, os.WriteFile(path, []byte(mutualTokens), 0o600))
	s := must.Get(New(tokenConfig(path), "test", slog.New(slog.NewTextHandler(&log, nil))))(t)
	s.close()
	if !strings.Contains(log.String(), "the setting tls-client-ca is missing") || !strings.Contains(log.String(), "certificates=3") {
		t.Errorf("the log has\n%s", log.String())
	}
}
