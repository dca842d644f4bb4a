package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// newCertificate returns a certificate for loopback, and the same in PEM form.
func newCertificate(t *testing.T) (*tls.Certificate, []byte) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestStoreTLS has a store with TLS whose certificate changes: it is trusted again after a
// reload with the new CA, and not before.
func TestStoreTLS(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	first, firstPEM := newCertificate(t)
	second, secondPEM := newCertificate(t)
	var cert atomic.Pointer[tls.Certificate]
	cert.Store(first)
	listener := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.Load(), nil },
	}))(t)
	var pipes sync.WaitGroup
	t.Cleanup(pipes.Wait)
	t.Cleanup(func() { listener.Close() })
	pipes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			pipes.Go(func() {
				defer conn.Close()
				to, err := redis.Dial()
				if err != nil {
					return
				}
				defer to.Close()
				pipes.Go(func() {
					defer conn.Close()
					io.Copy(conn, to)
				})
				io.Copy(to, conn)
			})
		}
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write := func(data []byte) {
		must.Do(t, os.WriteFile(ca, data, 0o600))
	}
	write(firstPEM)
	n := newNode(t, "rediss://"+listener.Addr().String()+slowStore, func(c *Config) { c.StoreCA = ca })
	n.wantReady(200)
	cert.Store(second)
	redis.Kill() // which ends the connections
	n.wantReady(503)
	must.Do(t, redis.Run())
	eventually(t, "the new certificate is rejected", func() bool { return strings.Contains(n.state().Error, "certificate") })
	write([]byte("no certificate"))
	if err := n.Reload(); err == nil || !strings.Contains(err.Error(), "store-ca: ") {
		t.Errorf("a reload with a file without a certificate: %v", err)
	}
	write(secondPEM)
	must.Do(t, n.Reload())
	n.wantReady(200)
	eventually(t, "the store with TLS decides", func() bool { return n.take("closed", "ada") })
}
