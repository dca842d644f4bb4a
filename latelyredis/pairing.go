package latelyredis

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// The bounds of one reply. The largest that scripts return is a part of the list of bans: 32 MiB are some 300,000 bans,
// in each of 16 parts. The most values have the slots of a cluster.
const (
	maxReply       = 32 << 20
	maxReplyValues = 1 << 18

	// maxCommand is the longest command, as of Redis with its default client-query-buffer-limit.
	maxCommand = 1 << 30

	// busyFor is for how long replies come while others are expected, until commands wait for all.
	busyFor = 250 * time.Millisecond

	// busyTimeout is how long they wait. Scripts take less than a millisecond.
	busyTimeout = time.Second
)

// What follows a command.
type reply byte

const (
	replyAny      reply = iota
	replyHello          // decides the version of the protocol
	replyRole           // an array, not empty
	replyPrimary        // of SENTINEL GET-MASTER-ADDR-BY-NAME: an array of two
	replyConfirms       // of SUBSCRIBE: a message for each channel, or an error
	replyNone           // of UNSUBSCRIBE: messages, or an error
	replyPing           // PONG or an error
	replyPong           // of PING behind UNSUBSCRIBE, by which rueidis finds the end of these
)

// An expectation is what follows commands that have been sent.
type expectation struct {
	reply reply
	n     int  // replies, or channels to be confirmed
	begun bool // a channel was confirmed
}

// A pairing finds to which command of a connection each reply belongs. One goroutine at a time sends, and one receives.
type pairing struct {
	commands, replies *resp.Scanner

	mu         sync.Mutex
	expected   []expectation // in the order of the commands
	version3   bool
	subscribed bool // so that in version 2, arrays may be messages

	since time.Time     // when a command was sent while no reply was expected
	busy  bool          // a reply has come since
	idle  chan struct{} // receives when none is expected, if a command waits for that
	ended bool          // no more replies come
}

func newPairing() *pairing {
	return &pairing{
		commands: resp.NewScanner(resp.Limits{Bulk: maxCommand, Args: maxCommand, Command: maxCommand}),
		replies:  resp.NewScanner(resp.Limits{Bulk: maxReply, Args: maxReplyValues, Command: maxReply}),
	}
}

// pause waits until no reply is expected, or none comes any more. If a reply was lost or repeated, all
// later ones belong to other commands than it seems. This shows only when all replies should be there: one is missing, or
// comes after them.
//
// REQUIRES: p.mu, which it releases while it waits.
func (p *pairing) pause() error {
	idle := make(chan struct{}, 1)
	p.idle = idle
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-idle:
		return nil
	case <-time.After(busyTimeout):
		return errMissing
	}
}

// overdue reports whether replies have come for so long that all must have come once.
func (p *pairing) overdue() bool {
	return !p.ended && len(p.expected) > 0 && p.busy && time.Since(p.since) >= busyFor
}

// sent notes what follows the commands that end in b.
func (p *pairing) sent(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overdue() {
		if err := p.pause(); err != nil {
			return err
		}
	}
	for len(b) > 0 {
		n, whole, err := p.commands.Scan(b)
		if err != nil {
			return err
		}
		if b = b[n:]; whole {
			p.expect(p.commands.Value())
		}
	}
	return nil
}

func (p *pairing) expect(command resp.Value) {
	if len(p.expected) == 0 {
		p.since, p.busy = time.Now(), false
	}
	e := expectation{reply: replyAny, n: 1}
	name, rest, _ := bytes.Cut(command.Text, []byte(" "))
	switch {
	case len(name) > len("PUNSUBSCRIBE"):
	case is(name, "HELLO"):
		e.reply = replyHello
	case is(name, "ROLE"):
		e.reply = replyRole
	case is(name, "SENTINEL"):
		if what, _, _ := bytes.Cut(rest, []byte(" ")); is(what, "GET-MASTER-ADDR-BY-NAME") {
			e.reply = replyPrimary
		}
	case is(name, "SUBSCRIBE"), is(name, "PSUBSCRIBE"), is(name, "SSUBSCRIBE"):
		e.reply, e.n, p.subscribed = replyConfirms, int(command.N)-1, true
	case is(name, "UNSUBSCRIBE"), is(name, "PUNSUBSCRIBE"), is(name, "SUNSUBSCRIBE"):
		e.reply = replyNone
	case is(name, "PING") && command.N == 1:
		e.reply = replyPing
		if i := len(p.expected) - 1; i >= 0 && p.expected[i].reply == replyNone {
			e.reply = replyPong
		}
	}
	if i := len(p.expected) - 1; i >= 0 && e.reply == replyAny && p.expected[i].reply == replyAny {
		p.expected[i].n++
		return
	}
	p.expected = append(p.expected, e)
}

// is reports whether text is word, in upper or lower case.
func is(text []byte, word string) bool {
	return len(text) == len(word) && bytes.EqualFold(text, []byte(word))
}

var (
	errSurplus = errors.New("a reply to no command")
	errMissing = errors.New("a command without a reply: one was lost, or the server stalled for a second")
)

// received returns how many bytes of b a client may read, and what is wrong with those behind.
func (p *pairing) received(b []byte) (good int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := 0; at < len(b); good = at {
		if !p.replies.Within() && len(p.expected) == 0 && !p.maySend(b[at]) {
			return good, errSurplus
		}
		n, whole, err := p.replies.Scan(b[at:])
		if err == nil && whole {
			err = p.answered(p.replies.Value())
		}
		if err != nil {
			return good, err
		}
		at += n
	}
	return good, nil
}

// maySend reports whether the server may send what begins with the byte kind without a command.
func (p *pairing) maySend(kind byte) bool {
	aggregate := kind == resp.KindArray || kind == resp.KindMap || kind == resp.KindSet // rueidis does not ask which
	return kind == resp.KindPush || aggregate && p.subscribed && !p.version3
}

// answered notes a reply or a message, and returns what is wrong with it.
func (p *pairing) answered(v resp.Value) error {
	if p.maySend(v.Kind) {
		switch word, rest, _ := bytes.Cut(v.Text, []byte(" ")); string(word) {
		case "subscribe", "psubscribe", "ssubscribe":
			return p.confirmed(v)
		case "unsubscribe", "punsubscribe", "sunsubscribe":
			if v.N < 3 || len(p.expected) > 0 && p.expected[0].begun {
				return errMessage
			}
			return nil
		case "message":
			return checkMessage(rest, len(v.Text))
		case "pmessage", "smessage":
			return nil
		}
		switch {
		case v.Kind == resp.KindPush:
			return nil
		case v.N > 0 && !isPong(v):
			return errMessage
		}
	}
	for p.endsSubscriptions() {
		p.answeredOne()
		if v.Kind == resp.KindError && !isPong(v) {
			return nil // it was refused
		}
	}
	if len(p.expected) == 0 {
		return errSurplus
	}
	if err := checkReply(p.expected[0], v); err != nil {
		return err
	}
	if p.expected[0].reply == replyHello && v.Kind != resp.KindError {
		p.version3 = v.Kind == resp.KindMap
	}
	p.answeredOne()
	return nil
}

// endsSubscriptions reports whether the next reply is that to an UNSUBSCRIBE, which has none if it is done.
func (p *pairing) endsSubscriptions() bool {
	return len(p.expected) > 0 && p.expected[0].reply == replyNone
}

// confirmed notes that a channel was confirmed.
func (p *pairing) confirmed(v resp.Value) error {
	for p.endsSubscriptions() {
		p.answeredOne()
	}
	if v.N < 3 || len(p.expected) == 0 || p.expected[0].reply != replyConfirms {
		return errMessage
	}
	p.expected[0].begun = true
	p.answeredOne()
	return nil
}

// answeredOne ends the wait for the first reply that is expected.
func (p *pairing) answeredOne() {
	p.busy = true
	first := &p.expected[0]
	refused := first.reply == replyConfirms && !first.begun
	if first.n--; first.n > 0 && !refused {
		return
	}
	if p.expected = p.expected[:copy(p.expected, p.expected[1:])]; len(p.expected) > 0 {
		return
	}
	p.wake()
}

// end notes that the connection is over: no command waits for replies.
func (p *pairing) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake()
}

// wake ends the wait of a command.
func (p *pairing) wake() {
	if p.idle != nil {
		p.idle <- struct{}{}
		p.idle = nil
	}
}
