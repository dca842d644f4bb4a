// Package dnstest is a DNS server on loopback, for tests.
package dnstest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// A Server answers questions about the names of addresses and the addresses of names.
type Server struct {
	conn net.PacketConn

	mu        sync.Mutex
	hosts     map[string][]string     // of addresses, as 1.2.0.192.in-addr.arpa.
	addrs     map[string][]netip.Addr // of hosts, with a dot at the end
	held      []held
	holds     bool
	questions int
}

// New starts a server without names. It ends with the test.
func New(t testing.TB) *Server {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{conn: conn, hosts: make(map[string][]string), addrs: make(map[string][]netip.Addr)}
	var running sync.WaitGroup
	running.Go(s.serve)
	t.Cleanup(func() {
		conn.Close()
		running.Wait()
	})
	return s
}

// Resolver returns a resolver that queries only s.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

// Name gives an address the name of a host.
func (s *Server) Name(addr, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := reverse(netip.MustParseAddr(addr))
	s.hosts[r] = append(s.hosts[r], host)
}

// Address gives a host an address.
func (s *Server) Address(host, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs[host] = append(s.addrs[host], netip.MustParseAddr(addr))
}

// A held question waits for its answer.
type held struct {
	question []byte
	from     net.Addr
}

// Hold makes s answer no more questions before Release.
func (s *Server) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = true
}

// Release makes s answer the questions that have come since Hold, and all others.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = false
	for _, h := range s.held {
		_, _ = s.conn.WriteTo(s.answer(h.question), h.from)
	}
	s.held = nil
}

// Questions returns how many questions have come.
func (s *Server) Questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questions
}

// reverse returns the name under which DNS has the names of an address.
func reverse(a netip.Addr) string {
	if a.Is4() {
		b := a.As4()
		return fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa.", b[3], b[2], b[1], b[0])
	}
	var b strings.Builder
	const digits = "0123456789abcdef"
	for i := 15; i >= 0; i-- {
		c := a.As16()[i]
		b.Write([]byte{digits[c&15], '.', digits[c>>4], '.'})
	}
	return b.String() + "ip6.arpa."
}

func (s *Server) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		s.asked(bytes.Clone(buf[:n]), from)
	}
}

func (s *Server) asked(question []byte, from net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions++
	if s.holds {
		s.held = append(s.held, held{question, from})
		return
	}
	_, _ = s.conn.WriteTo(s.answer(question), from)
}

const (
	typeA   = 1
	typePTR = 12
)

// answer returns the answer to a message with one question.
//
// REQUIRES: s.mu.
func (s *Server) answer(question []byte) []byte {
	name, at := "", 12
	for question[at] != 0 {
		n := int(question[at])
		name += strings.ToLower(string(question[at+1:at+1+n])) + "."
		at += 1 + n
	}
	kind := binary.BigEndian.Uint16(question[at+1:])
	var records [][]byte
	for _, host := range s.hosts[name] {
		if kind == typePTR {
			records = append(records, packed(host))
		}
	}
	for _, a := range s.addrs[name] {
		if a.Is4() == (kind == typeA) && kind != typePTR {
			records = append(records, a.AsSlice())
		}
	}
	answer := append([]byte{}, question[:at+5]...)
	flags := uint16(0x8180)
	if s.hosts[name] == nil && s.addrs[name] == nil {
		flags |= 3 // no such name
	}
	binary.BigEndian.PutUint16(answer[2:], flags)
	binary.BigEndian.PutUint16(answer[6:], uint16(len(records)))
	binary.BigEndian.PutUint32(answer[8:], 0)
	for _, data := range records {
		answer = append(answer, 0xc0, 12)
		answer = binary.BigEndian.AppendUint16(answer, kind)
		answer = append(answer, 0, 1, 0, 0, 0, 60)
		answer = binary.BigEndian.AppendUint16(answer, uint16(len(data)))
		answer = append(answer, data...)
	}
	return answer
}

// packed returns a name, which ends with a dot, as DNS has it.
func packed(name string) []byte {
	var b []byte
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0)
}
