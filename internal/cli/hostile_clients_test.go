package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// clientAttacks are attacks by clients that send incomplete or too large
// requests.
var clientAttacks = []attack{
	{"half-sent bodies", nil, halfSentBodies, fault{"internal/server/access/limits.go", "were resident", []string{"if b.used.Add(int64(n)) <= b.limit {", "if b.used.Add(int64(n)) <= 1<<62 {"}}},
	{"half-sent logins", withTokens, halfSentLogins, fault{"internal/server/httpapi/routes.go", "without a token is answered", []string{"maxLogin = 4 << 10", "maxLogin = 1 << 20"}}},
	{"half-sent headers", nil, halfSentHeaders, fault{"internal/server/httpapi/server.go", "were not closed", []string{"headerTimeout = 2 * time.Second", "headerTimeout = time.Hour"}}},
	{"half-sent commands", nil, halfSentCommands, fault{"internal/server/respapi/reaper.go", "were not closed", []string{"case p == partial && ", "case false && "}}},
	{"half-done handshakes", withTLS, halfDoneHandshakes, fault{"internal/server/respapi/reaper.go", "were not closed", []string{"case p == greeting && ", "case false && "}}},
	{"failed logins", withTokens, failedLogins, fault{"internal/server/loglimit/loglimit.go", "about failed logins", []string{"if !h.Allow(r.Level, r.Message) {", "if !h.Allow(r.Level, r.Message) && r.PC == 1 {"}}},
}

// How long an attack lasts that could go on for ever, and how many connections one has
// that holds many: less than one address may have.
const (
	attackTime  = 4 * time.Second
	attackConns = 1000
)

const (
	hostileAdmin = "hostile-admin-token-0123456789-0123456789"
	hostileRead  = "hostile-read-token-0123456789-01234567890"
)

// withTokens starts a server with tokens.
func withTokens(h *attacked) []string {
	h.Helper()
	path := filepath.Join(h.TempDir(), "tokens")
	must.Do(h, os.WriteFile(path, []byte("admin "+hostileAdmin+"\nread "+hostileRead+"\n"), 0o600))
	h.Setenv("HOSTILE_TOKEN", hostileAdmin)
	return []string{"--token-file", path}
}

// withTLS starts a server whose listeners use TLS.
func withTLS(h *attacked) []string {
	h.Helper()
	h.tls = true
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(h)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	cert := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(h)
	der := must.Get(x509.MarshalECPrivateKey(key))(h)
	dir := h.TempDir()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert}, "key": {Type: "EC PRIVATE KEY", Bytes: der}} {
		must.Do(h, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return []string{"--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key")}
}

// halfSentBodies announces 1 MiB and sends a million bytes of it.
func halfSentBodies(h *attacked) {
	text := announced("/v1/check", 1<<20, strings.Repeat(" ", 1_000_000))
	h.during(func() { h.attackers(attackConns, func(int) { h.hold(h.http, text, attackTime) }) })
}

// halfSentLogins announces the largest body, sends one byte, without a token, and repeats this: memory that is used again
// must be cleared, and so becomes resident.
func halfSentLogins(h *attacked) {
	text := announced("/v1/login", 1<<20, "{")
	h.during(func() { h.attackers(attackConns, func(int) { h.hold(h.http, text, attackTime) }) })
	r, _ := http.NewRequest("POST", h.http+"/v1/login", strings.NewReader(strings.Repeat(" ", 1<<20)))
	r.Header.Set("Content-Type", "application/json")
	if status, _ := h.statusOf(r); status != http.StatusRequestEntityTooLarge {
		h.Errorf("a body of 1 MiB without a token is answered with %d; want 413", status)
	}
}

// halfSentHeaders sends 50 KB of a header line.
func halfSentHeaders(h *attacked) {
	text := "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 50_000)
	h.during(func() { h.attackers(attackConns, func(int) { h.hold(h.http, text, attackTime) }) })
}

// halfSentCommands sends 500 KB of a command.
func halfSentCommands(h *attacked) {
	arg := fmt.Sprintf("$60000\r\n%s\r\n", strings.Repeat("x", 60_000))
	text := "PING\r\n*100\r\n" + strings.Repeat(arg, 8) + "$60000\r\n"
	h.during(func() { h.attackers(attackConns, func(int) { h.hold(h.resp, text, attackTime) }) })
}

// halfDoneHandshakes sends the beginning of a handshake of TLS.
func halfDoneHandshakes(h *attacked) {
	const begin = "\x16\x03\x01\x02\x00\x01\x00"
	h.during(func() {
		h.attackers(attackConns, func(i int) { h.hold([]string{h.http, h.resp}[i%2], begin, attackTime) })
	})
}

// failedLogins guesses tokens from the address of a client with a valid one, and logs in more often than sessions used to
// be kept.
func failedLogins(h *attacked) {
	login := func(token string) (int, string) {
		r, _ := http.NewRequest("POST", h.http+"/v1/login", strings.NewReader(`{"token":"`+token+`"}`))
		r.Header.Set("Content-Type", "application/json")
		status, header := h.statusOf(r)
		cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
		return status, cookie
	}
	_, session := login(hostileAdmin)
	wrong := postText("/v1/login", `{"token":"wrong-wrong-wrong-wrong-wrong-wrong-wrong"}`)
	h.during(func() {
		h.attackers(32, func(i int) {
			if i%2 == 0 {
				h.repeat(h.http, wrong, attackTime)
				return
			}
			h.repeat(h.resp, "AUTH wrong-wrong-wrong-wrong-wrong-wrong\r\n", attackTime)
		})
	})
	for range 20 {
		login("wrong-wrong-wrong-wrong-wrong-wrong-wrong")
	}
	for range 1100 {
		if status, _ := login(hostileRead); status != http.StatusOK {
			h.Fatalf("a login with a valid token beside those that failed: %d", status)
		}
	}
	r, _ := http.NewRequest("GET", h.http+"/v1/status", nil)
	r.Header.Set("Cookie", session)
	if status, _ := h.statusOf(r); status != http.StatusOK {
		h.Errorf("the admin's session after 1,100 other logins: %d", status)
	}
	if n := len(h.serving.log.String()); n > 100_000 {
		h.Errorf("the log has %d bytes about failed logins", n)
	}
}
