package follow

import (
	"errors"
	"io"
	"sync"
	"time"
)

// An Input is a standard input. Several Followers can follow it in turn: each continues where the
// previous one has stopped. Make one with [NewInput].
type Input struct {
	r     io.Reader
	pipe  *pipe
	begin sync.Once
}

// NewInput returns the input r. It is read when a Follower runs.
func NewInput(r io.Reader) *Input { return &Input{r: r, pipe: newPipe(nil)} }

// read begins to read the input, which nothing can interrupt.
func (i *Input) read() {
	i.begin.Do(func() {
		go func() {
			err := i.pipe.fill(i.r)
			i.pipe.endLine()
			i.pipe.end(err)
		}()
	})
}

// ended reports whether all of the input was passed on.
func (i *Input) ended() bool {
	ended, _ := i.pipe.ended()
	return ended && i.pipe.size() == 0
}

// A stdin is the standard input as a log.
type stdin struct {
	stream
	input *Input
	ended bool // it was logged that it has ended
}

func newStdin(r logReader, input *Input, wake chan<- struct{}) (source, error) {
	if input == nil {
		return nil, errors.New("-: there is no standard input: must be a file")
	}
	input.pipe.wakes(wake)
	return &stdin{stream: stream{logReader: r}, input: input}, nil
}

func (s *stdin) begun() bool { return true }

func (s *stdin) refresh(time.Time) {
	if s.pipe == nil {
		s.log.Info("reading the standard input: after a kill, lines since the last snapshot are lost", "file", s.path)
		s.pipe = s.input.pipe
		s.input.read()
	}
	ended, err := s.pipe.ended()
	if !ended || s.ended {
		return
	}
	s.ended = true
	if err != nil {
		s.complain(err)
		return
	}
	s.log.Info("the standard input has ended", "file", s.path)
}

// close leaves the input to the next Follower.
func (s *stdin) close() {}
