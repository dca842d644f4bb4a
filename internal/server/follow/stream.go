package follow

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/lately-go/lately/match"
)

const (
	// maxPipe is how many bytes that were read from a stream may wait, more than the longest line.
	maxPipe = 2 * blockSize

	// manyBytes is how many of them are passed on before the next poll.
	manyBytes = 64 << 10
)

// A pipe holds what a goroutine has read from a stream and the Follower has not passed on yet.
type pipe struct {
	// at is the place of the first byte. Only the Follower uses it.
	at linePlace

	mu       sync.Mutex
	wake     chan<- struct{} // has a value when there is much to pass on
	notFull  sync.Cond
	data     []byte
	isClosed bool
	hasEnded bool
	err      error // at its end; nil if nothing failed
}

func newPipe(wake chan<- struct{}) *pipe {
	p := &pipe{wake: wake}
	p.notFull.L = &p.mu
	return p
}

// wakes makes p use wake from now on.
func (p *pipe) wakes(wake chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake = wake
}

// fill reads r until it ends, or fails, or p is closed. It returns nil if r has ended.
func (p *pipe) fill(r io.Reader) error {
	buf := make([]byte, manyBytes)
	for {
		n, err := r.Read(buf)
		if !p.put(buf[:n]) {
			return io.ErrClosedPipe
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// put adds data, and waits while there is no memory for it. It returns false if p is closed.
func (p *pipe) put(data []byte) bool {
	p.mu.Lock()
	for len(p.data)+len(data) > maxPipe && !p.isClosed {
		p.notFull.Wait()
	}
	p.data = append(p.data, data...)
	open, many, wake := !p.isClosed, len(p.data) >= manyBytes, p.wake
	p.mu.Unlock()
	if many {
		select {
		case wake <- struct{}{}:
		default: // it has not looked since
		}
	}
	return open
}

// endLine ends a line that its writer has not ended.
func (p *pipe) endLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.data); n > 0 && p.data[n-1] != '\n' {
		p.data = append(p.data, '\n')
	}
}

// end marks the end of the stream.
func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hasEnded, p.err = true, err
}

// close makes fill return.
func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	p.notFull.Broadcast()
}

// ended reports whether the stream has ended, and with which error.
func (p *pipe) ended() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasEnded, p.err
}

// lines returns whole lines, a block at most. Without one, it returns the beginning of a line that is too
// long, or nothing. The data stay as they are until advance.
func (p *pipe) lines() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	block := p.data[:min(len(p.data), blockSize)]
	if end := bytes.LastIndexByte(block, '\n') + 1; end > 0 {
		return block[:end]
	}
	if len(block) < blockSize {
		return nil
	}
	return block
}

// advance goes past n bytes.
func (p *pipe) advance(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data = p.data[n:]
	p.notFull.Broadcast()
}

// size returns the number of bytes.
func (p *pipe) size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.data))
}

// A stream is a log that is read once, from its beginning to its end, and cannot be read again.
type stream struct {
	logReader
	pipe   *pipe // nil while it is not open
	parser *lineParser
}

func (s *stream) hasLines() bool { return s.pipe != nil && len(s.pipe.lines()) > 0 }

func (s *stream) behind() bool { return s.hasLines() }

func (s *stream) unreadBytes() int64 {
	if s.pipe == nil {
		return 0
	}
	return s.pipe.size()
}

func (s *stream) readBlock(_ []byte, each func(*match.Event), now time.Time) {
	s.passNext(each, func([]byte) {}, now)
}

// passNext passes on the events of the next lines, and calls passed with what it has gone past.
func (s *stream) passNext(each func(*match.Event), passed func([]byte), now time.Time) {
	_, _ = s.passLines(&s.parser, &s.pipe.at, s.pipe.lines(), false, each, func(lines []byte) error { // it returns the errors of this function
		passed(lines)
		s.pipe.advance(len(lines))
		return nil
	}, now)
}

// saved returns a log without a place: a stream cannot be read again.
func (s *stream) saved() savedLog { return savedLog{Path: s.path} }

func (s *stream) resume(*savedLog) {}
