package accesslogtest

import (
	"fmt"
	"math/rand/v2"
)

// Users that are guessed at; the first is the flood's.
var users = []string{"root", "admin", "test", "oracle", "ubuntu", "git", "postgres", "pi", "www", "backup", "deploy", "guest"}

// An sshd is the scene of SyslogSSHD: people who log in by key and clients that
// guess passwords. Only a failed login is an event.
type sshd struct {
	stamp   stamp
	rng     *rand.Rand
	clients []string
	popular zipf
	crawled int
}

func newSSHD(c Config) *sshd {
	rng := rand.New(rand.NewPCG(c.Seed, streamScene))
	return &sshd{
		stamp:   stamp{start: c.Start, layout: "Jan _2 15:04:05"},
		rng:     rng,
		clients: addresses(c.Clients, rng),
		popular: newZipf(c.Clients, 12),
	}
}

func (s *sshd) session(b *batch, at, end int64, most, _ int) {
	client := s.clients[s.popular.draw(s.rng)]
	user := users[s.rng.IntN(len(users))]
	var messages []string
	switch s.rng.IntN(4) {
	case 0:
		s.write(b, at, client, "Accepted publickey for deploy from ", " ssh2: ED25519 SHA256:invented", false)
		messages = []string{"Received disconnect from ", ":11: disconnected by user"}
	case 1:
		s.write(b, at, client, "Failed password for root from ", " ssh2", true)
		messages = []string{"Connection closed by authenticating user root ", " [preauth]"}
	default:
		s.write(b, at, client, "Failed password for invalid user "+user+" from ", " ssh2", true)
		messages = []string{"Connection closed by invalid user " + user + " ", " [preauth]"}
	}
	if most > 1 {
		s.write(b, min(at+800, end-1), client, messages[0], messages[1], false)
	}
}

func (s *sshd) crawl(b *batch, at int64) {
	user := users[s.crawled%len(users)]
	s.crawled++
	s.write(b, at, crawlerClient, "Failed password for invalid user "+user+" from ", " ssh2", true)
}

func (s *sshd) flood(b *batch, at int64) {
	s.write(b, at, floodClient, "Failed password for "+users[0]+" from ", " ssh2", true)
}

func (s *sshd) crowd(b *batch, at int64, client string) {
	s.write(b, at, client, "Failed password for invalid user "+users[1]+" from ", " ssh2", true)
}

// hot is never called: sshd has no paths.
func (s *sshd) hot(b *batch, at int64) { s.crawl(b, at) }

func (s *sshd) dirty(b *batch, at int64, kind int) {
	switch kind {
	case 0:
		s.write(b, at, probeClient, "error: kex_exchange_identification: banner line contains invalid characters from ", "", false)
	case 1:
		b.end(at, len(b.buf), probeClient, false)
	default:
		s.flood(b, at)
		b.cut()
	}
}

// write adds a line: before, the client and its port, after.
func (s *sshd) write(b *batch, at int64, client, before, after string, event bool) {
	from := len(b.buf)
	process := 1000 + s.rng.IntN(30_000)
	port := 32768 + s.rng.IntN(28_000)
	b.buf = fmt.Appendf(b.buf, "%s gate sshd[%d]: %s%s port %d%s", s.stamp.at(at), process, before, client, port, after)
	b.end(at, from, client, event)
}
