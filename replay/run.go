package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// Run replays c.Files and returns a report. It returns an error if nothing was replayed:
// c is wrong, ctx was done, or the files have no events for it. The last is an
// [InputError], and then the report only counts lines and has the bad ones. A problem
// with one file or rule is in the report's Problems, beside the results of the others.
func Run(ctx context.Context, c Config) (*Report, error) {
	started := time.Now()
	r, err := newRun(c)
	if err != nil {
		return nil, err
	}
	t, report, err := r.load(ctx)
	if err != nil {
		return report, err
	}
	if err := r.judge(ctx, t, report); err != nil {
		return nil, err
	}
	report.ElapsedSeconds = time.Since(started).Seconds()
	return report, nil
}

// newRun returns a run of c, which it validates. Beside the rules of c it judges the
// limits and bans of each of files.
func newRun(c Config, files ...*rules.File) (*run, error) {
	r, err := c.prepare()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		rs := limitsOf(f)
		if err := rs.checkWindows(r.Resolution); err != nil {
			return nil, err
		}
		r.rulesets = append(r.rulesets, rs)
	}
	r.fields = r.usedFields()
	return r, nil
}

// load reads all files. It returns their events in the order of judging, and a report
// that counts lines. The report comes with an error, too, if that is an InputError.
func (r *run) load(ctx context.Context) (*timeline, *Report, error) {
	blocks, workers, err := r.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	cut := r.cutBlocks(blocks)
	report := r.summarize(blocks)
	report.Cut = cut
	if report.Events > maxEvents {
		return nil, nil, fmt.Errorf("%w: %d: must be at most %d in one run; replay fewer files at once",
			ErrTooManyEvents, report.Events, maxEvents)
	}
	if err := r.checkLines(blocks, report); err != nil {
		return nil, report, err
	}
	if err := r.checkCut(blocks, report); err != nil {
		return nil, report, err
	}
	r.precision, r.coarsest = precisions(blocks)
	r.resolution = cmp.Or(r.Resolution, r.precision)
	report.ResolutionSeconds, report.LogResolutionSeconds = r.resolution.Seconds(), r.precision.Seconds()
	t := r.assemble(blocks, workers)
	report.Jumps = r.jumps(t)
	if !r.FileOrder {
		t.sort(r.resolution)
	}
	return t, report, nil
}

// ErrTooManyEvents is the error of Run if the files have more than 2,147,483,647 events.
var ErrTooManyEvents = errors.New("too many events")

const maxEvents = math.MaxInt32 // events are numbered by an int32

// A run is the state of one Run.
type run struct {
	Config
	rulesets   []ruleset
	where      match.Condition    // of Config.Cut
	precision  time.Duration      // of the log's times
	coarsest   time.Duration      // of the times of one format in it
	resolution time.Duration      // at which times are judged
	fields     []string           // of events, one for each column
	formats    []accesslog.Format // of each file
	assumed    []FileYear
	problems   []error

	firstLines [][]byte // of each file
	keyGiven   bool     // Key is not the default
	positions  bool     // events know their lines
}

// usedFields returns every field that a rule or a list looks at.
func (r *run) usedFields() []string {
	names := []string{r.Key}
	for i := range r.rulesets {
		names = append(names, r.rulesets[i].fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// column returns the number of a field's column.
func (r *run) column(field string) int { return slices.Index(r.fields, field) }

// parallel calls f for 0 to n-1 on all cores.
func (r *run) parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, r.Cores) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// read reads and parses all files. The blocks come back in their order.
func (r *run) read(ctx context.Context) ([]*parsed, []*worker, error) {
	r.Progress.Total.Store(totalSize(r.Files))
	queue := make(chan block, 2*r.Cores)
	buffers := sync.Pool{New: func() any { b := make([]byte, blockSize); return &b }}
	workers := make([]*worker, r.Cores)
	done := make([][]*parsed, r.Cores)
	var wg sync.WaitGroup
	for i := range workers {
		w := r.newWorker(i)
		workers[i] = w
		wg.Go(func() {
			for b := range queue {
				done[i] = append(done[i], w.parse(b))
				if buffer := b.data[:cap(b.data)]; len(buffer) == blockSize { // a block that is one line too long has none
					buffers.Put(&buffer)
				}
			}
		})
	}
	modified := r.cut(ctx, queue, &buffers)
	close(queue)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	blocks := slices.Concat(done...)
	slices.SortFunc(blocks, func(a, b *parsed) int { return a.seq - b.seq })
	for file := range r.Files {
		if !r.formats[file].Yearless() {
			continue
		}
		if year := r.date(ofFile(blocks, file), modified[file]); r.Year == 0 {
			r.assumed = append(r.assumed, FileYear{r.Files[file], year})
		}
	}
	return blocks, workers, nil
}

// ofFile returns the blocks of a file.
func ofFile(blocks []*parsed, file int) []*parsed {
	return slices.DeleteFunc(slices.Clone(blocks), func(b *parsed) bool { return b.file != file })
}

// totalSize returns the size of all files, 0 when one has none.
func totalSize(files []string) int64 {
	total := int64(0)
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil || !st.Mode().IsRegular() {
			return 0
		}
		total += st.Size()
	}
	return total
}

// cut reads all files and queues their blocks. It returns when each file was
// last modified.
func (r *run) cut(ctx context.Context, queue chan<- block, buffers *sync.Pool) []time.Time {
	modified := make([]time.Time, len(r.Files))
	seq := 0
	for file, path := range r.Files {
		src, err := r.open(path)
		if err != nil {
			r.problems = append(r.problems, err)
			continue
		}
		modified[file] = src.modified
		if err := r.cutFile(ctx, file, src, &seq, queue, buffers); err != nil {
			r.problems = append(r.problems, err)
		}
		src.file.Close()
	}
	return modified
}

// cutFile queues the blocks of one file. The error is a problem with the file.
func (r *run) cutFile(ctx context.Context, file int, src io.Reader, seq *int, queue chan<- block, buffers *sync.Pool) (err error) {
	c := lineChunker{src: src}
	known, lines := false, false
	for ctx.Err() == nil {
		data, tooLong := c.next(*buffers.Get().(*[]byte))
		if !lines { // programs on Windows write a byte order mark before the first line
			data = bytes.TrimPrefix(data, []byte("\ufeff"))
		}
		if len(data) == 0 && !tooLong {
			break
		}
		lines = true
		if len(data) > 0 && !known {
			known = true
			r.firstLines[file] = firstLine(data)
			if r.formats[file], err = r.formatOf(r.Files[file], data); err != nil {
				if failure := c.failure(); failure != nil { // the cause, perhaps
					r.problems = append(r.problems, readError(r.Files[file], failure))
				}
				return err
			}
		}
		select {
		case queue <- block{seq: *seq, file: file, format: r.formats[file], data: data, tooLong: tooLong}:
			*seq++
		case <-ctx.Done():
		}
	}
	if err := c.failure(); err != nil {
		return readError(r.Files[file], err)
	}
	if lines && !known { // each line is too long to tell the format from
		r.formats[file], err = r.formatOf(r.Files[file], nil)
	}
	return err
}

// formatOf returns the format of a file that begins with sample.
func (r *run) formatOf(path string, sample []byte) (accesslog.Format, error) {
	if r.Format != "auto" {
		return accesslog.ParseFormat(r.Format)
	}
	if f, ok := accesslog.Detect(sample); ok {
		return f, nil
	}
	return accesslog.Format{}, fmt.Errorf("%s: no known log format fits its first lines; name one with --format: %s, or a spec such as csv:time=1@s,client=2",
		path, strings.Join(accesslog.Formats(), ", "))
}
