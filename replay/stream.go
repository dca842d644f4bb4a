package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
)

// A stream reads the files of a run and gives their events to judge in the order of
// judging, in chunks: each chunk is in order, and no event of a later one comes before it.
// Without a lateness, all events are one chunk.
//
// With one, an event is late, and is left out, if an earlier event of its file is newer by
// more than that. So the events older than the newest of each file, less the lateness, are
// complete, and can be judged. What is late does not depend on how the files are read.
type stream struct {
	*run
	judge func(context.Context, *timeline) error
	all   []*interner      // of each column
	top   []*frequentTable // of each column; nil if each of its values matters
	held  int              // events that have been read and not been judged
	kept  int              // how many of them there were after the last chunk
}

// chunkEvents is how many events a chunk has at least, except the last: enough that each
// part of the keys has work for a while.
const chunkEvents = 1 << 17

func (r *run) newStream(judge func(context.Context, *timeline) error) *stream {
	s := &stream{run: r, judge: judge}
	for _, only := range r.frequentOnly() {
		var top *frequentTable
		if only {
			top = newFrequentTable(cmp.Or(r.frequent, maxFrequent))
		}
		s.top = append(s.top, top)
		in := newInterner()
		if r.Lateness > 0 { // the workers do not keep their values
			in.text = new(strings.Builder)
		}
		s.all = append(s.all, in)
	}
	return s
}

// read reads all events and judges them.
func (s *stream) read(ctx context.Context) error {
	readAll := s.readFiles
	if s.Events != nil {
		readAll = s.readEvents
	}
	if err := readAll(ctx); err != nil {
		return err
	}
	s.settleHeld()
	return s.release(ctx, math.MaxInt64)
}

// readFiles reads all files. It judges those events that are complete before the end.
func (s *stream) readFiles(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	s.Progress.Total.Store(totalSize(s.Files))
	queue, done := make(chan block, 2*s.Cores), make(chan *parsed, s.Cores)
	buffers := &sync.Pool{New: func() any { b := make([]byte, s.blockSize); return &b }}
	var reader, parsers, closer sync.WaitGroup
	reader.Go(func() {
		s.cut(reading, queue, buffers)
		close(queue)
	})
	for range s.Cores {
		w := s.newWorker()
		parsers.Go(func() {
			for b := range queue {
				data := b.data
				done <- w.parse(b)
				if buffer := data[:cap(data)]; len(buffer) == s.blockSize { // a block that is one line too long has none
					buffers.Put(&buffer)
				}
			}
		})
	}
	closer.Go(func() {
		parsers.Wait()
		close(done)
	})
	var failed error
	for p := range done {
		if failed == nil {
			failed = s.take(ctx, p)
		}
		if failed != nil {
			stop()
		}
	}
	reader.Wait()
	closer.Wait()
	return cmp.Or(failed, context.Cause(ctx))
}

// readEvents takes over Config.Events.
func (s *stream) readEvents(ctx context.Context) error {
	p, err := s.newWorker().gather(ctx, s.Events)
	if err != nil {
		return err
	}
	return s.take(ctx, p)
}

// take takes over a parsed block, and those of its file that came before it was there.
func (s *stream) take(ctx context.Context, p *parsed) error {
	l := s.logs[p.file]
	l.early[p.seq] = p
	for next := l.early[l.taken]; next != nil; next = l.early[l.taken] {
		delete(l.early, l.taken)
		l.taken++
		s.takeNext(l, next)
		if s.Lateness == 0 || s.held < 2*s.kept+s.chunkEvents {
			continue
		}
		if err := s.release(ctx, s.complete()); err != nil {
			return err
		}
	}
	return nil
}

// takeNext takes over the next block of a file.
func (s *stream) takeNext(l *logFile, b *parsed) {
	l.count(b)
	for c, top := range s.top {
		if top != nil {
			top.renumber(b.cols[c], b.values[c], b.numbers[c])
			b.values[c] = nil
		}
	}
	for _, b := range l.dated(b, s.Year) {
		l.held = append(l.held, b)
		if s.Lateness > 0 {
			s.settle(l, b)
			b.places = nil // only late events are named
		}
	}
	if b.end {
		l.complete.Store(math.MaxInt64)
	}
}

// complete returns the time before which all events have been read.
func (s *stream) complete() int64 {
	oldest := int64(math.MaxInt64)
	for _, l := range s.logs {
		oldest = min(oldest, l.complete.Load())
	}
	return oldest
}

// settleHeld leaves out what could not be compared before all files were read.
func (s *stream) settleHeld() {
	if s.Lateness > 0 {
		return
	}
	s.span = s.Cut.span(s.whole().last)
	for _, l := range s.logs {
		for _, b := range l.held {
			s.settle(l, b)
		}
	}
}

// release judges the events that are older than a time, if there are any.
func (s *stream) release(ctx context.Context, before int64) error {
	var blocks []*parsed
	events := 0
	for _, l := range s.logs {
		var newer []*parsed
		for _, b := range l.held {
			old, rest := b.split(before)
			if old != nil {
				blocks = append(blocks, old)
				events += len(old.times)
			}
			if rest != nil {
				newer = append(newer, rest)
			}
		}
		l.held = newer
	}
	s.held -= events
	s.kept = s.held
	switch {
	case events == 0:
		return nil
	case events > maxEvents:
		return fmt.Errorf("%w: %d: must be at most %d in one run; replay fewer files at once, or with --lateness", ErrTooManyEvents, events, maxEvents)
	}
	t := s.assemble(blocks, events)
	finest, _ := s.precisions()
	t.sort(max(s.Resolution, finest))
	return s.judge(ctx, t)
}

// ErrTooManyEvents is the error of [Run] for more than 2,147,483,647 events.
var ErrTooManyEvents = errors.New("too many events")

const maxEvents = math.MaxInt32 // the events of a chunk are numbered by an int32

// assemble brings blocks, in the order of the files, into one timeline, with one numbering
// of values in place of the workers' own.
func (s *stream) assemble(blocks []*parsed, events int) *timeline {
	t := &timeline{top: s.top, cols: make([][]uint32, len(s.fields)), values: make([][]string, len(s.fields)), times: make([]int64, 0, events)}
	for _, b := range blocks {
		t.times = append(t.times, b.times...)
		t.places = append(t.places, b.places...)
		b.times, b.places = nil, nil
	}
	s.parallel(len(s.fields), func(c int) {
		col := make([]uint32, 0, events)
		for _, b := range blocks {
			if s.top[c] != nil {
				col = append(col, b.cols[c]...)
			} else {
				col = b.numbers[c].append(col, b.cols[c], b.values[c], s.all[c])
			}
			b.cols[c] = nil
		}
		t.cols[c], t.values[c] = col, s.all[c].values
		if s.top[c] != nil {
			t.values[c] = s.top[c].values
		}
	})
	return t
}
