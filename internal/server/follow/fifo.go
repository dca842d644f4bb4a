package follow

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A fifo is a log that programs write to a named pipe. Writers can come and go.
type fifo struct {
	stream
	wake    chan<- struct{}
	file    *os.File
	filling sync.WaitGroup
	opened  bool // it was open

	replaced atomic.Bool // no program can open it any more
}

func newFIFO(r logReader, wake chan<- struct{}) source {
	return &fifo{stream: stream{logReader: r}, wake: wake}
}

func (f *fifo) begun() bool { return f.opened }

// refresh opens the FIFO that the path names now. The one before is read until no program has it open.
func (f *fifo) refresh(time.Time) {
	info, err := os.Stat(f.path)
	if err == nil && info.Mode().Type() != fs.ModeNamedPipe {
		err = errors.New("it is not a FIFO any more")
	}
	if f.pipe != nil {
		if open, statErr := f.file.Stat(); err != nil || statErr != nil || !os.SameFile(info, open) {
			f.replaced.Store(true)
		}
		ended, failed := f.pipe.ended()
		if !ended || f.hasLines() {
			f.complain(err)
			return
		}
		f.close()
		err = cmp.Or(err, failed)
	}
	if err == nil {
		err = f.open()
	}
	f.complain(err)
}

// open opens the FIFO, with or without a writer.
func (f *fifo) open() (err error) {
	if f.file, err = os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return err
	}
	if !f.opened {
		f.log.Info("reading a FIFO: after a kill, lines since the last snapshot are lost", "file", f.path)
	}
	p, file := newPipe(f.wake), f.file
	f.pipe, f.opened = p, true
	f.replaced.Store(false)
	f.filling.Go(func() {
		for {
			last := f.replaced.Load()
			err := p.fill(file)
			if p.endLine(); err != nil || last {
				p.end(err)
				return
			}
			time.Sleep(poll) // without a writer, reads end at once
		}
	})
	return nil
}

func (f *fifo) close() {
	if f.pipe == nil {
		return
	}
	f.pipe.close()
	f.file.Close() // read only
	f.filling.Wait()
	f.pipe = nil
}
