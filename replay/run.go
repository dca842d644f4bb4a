package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
)

// Run replays c.Files and returns a report. It returns an error if nothing was replayed:
// c is invalid, ctx is done, or the files have no events for it. In the last case it is
// an [InputError], and the report has the numbers of lines and the bad lines. A problem
// with one file or rule is in the report's Problems; the results of the others are
// complete.
func Run(ctx context.Context, c Config) (*Report, error) {
	started := time.Now()
	r, err := newRun(c)
	if err != nil {
		return nil, err
	}
	e := r.newEvents()
	report, err := r.read(ctx, e.judge)
	if err != nil {
		return report, err
	}
	if err := e.finish(report); err != nil {
		return nil, err
	}
	report.ElapsedSeconds = time.Since(started).Seconds()
	return report, nil
}

// load reads all files and returns their events, to be judged at once, with a report that
// counts lines.
func (r *run) load(ctx context.Context) (e *events, err error) {
	if r.Lateness > 0 {
		return nil, errors.New("--lateness: must not be given: all events are needed at once")
	}
	e = r.newEvents()
	e.report, err = r.read(ctx, e.load)
	return e, err
}

// read reads all files, judges their events in chunks, and returns a report of the lines.
// That comes with an error, too, if it is an InputError.
func (r *run) read(ctx context.Context, judge func(context.Context, *timeline) error) (*Report, error) {
	if err := r.newStream(judge).read(ctx); err != nil {
		return nil, err
	}
	r.precision, r.coarsest = r.precisions()
	r.resolution = cmp.Or(r.Resolution, r.precision)
	report := r.summarize()
	if err := r.checkLines(report); err != nil {
		return report, err
	}
	return report, r.checkCut(report)
}

// A run is the state of one Run.
type run struct {
	Config
	key        match.Key // of Config.Key
	rulesets   []ruleset
	where      match.Condition      // of Config.Cut
	cutFields  []string             // that where uses
	intake     *intake.Intake       // of the fields that a rules file declares as hashed
	identity   *latelyhttp.Identity // nil without trusted proxies
	span       span                 // of Config.Cut; of a relative one once all files were read
	precision  time.Duration        // of the log's times
	coarsest   time.Duration        // of the times of one format in it
	resolution time.Duration        // at which times are judged
	fields     []string             // of events, one for each column
	logs       []*logFile
	keyGiven   bool // Key is not the default
	positions  bool // events know their lines
	suggests   bool // it is a run of Suggest, whose rules are not known yet
}

// usedFields returns every field that a rule or a list looks at.
func (r *run) usedFields() []string {
	names := r.judgedFields()
	if r.Traffic {
		names = append(append(names, trafficFields...), sizeField)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judgedFields returns the fields of the key and of the rules, perhaps more than once.
func (r *run) judgedFields() []string {
	names := slices.Clip(keyvalue.Fields(r.key))
	if r.Events != nil {
		names = append(names, partField)
	}
	for i := range r.rulesets {
		names = append(names, r.rulesets[i].fields()...)
	}
	return names
}

// frequentOnly reports for each field whether only its frequent values matter: the traffic has it,
// and no rule or key.
func (r *run) frequentOnly() []bool {
	only, judged := make([]bool, len(r.fields)), r.judgedFields()
	for i, name := range r.fields {
		only[i] = r.Traffic && !r.suggests && slices.Contains(trafficFields, name) && !slices.Contains(judged, name)
	}
	return only
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

// cut reads all files and queues their blocks: without a lateness one file after the
// other, else always of the file that the others wait for.
func (r *run) cut(ctx context.Context, queue chan<- block, buffers *sync.Pool) {
	for l := r.nextLog(); l != nil && ctx.Err() == nil; l = r.nextLog() {
		r.Progress.File.Store(int64(l.number + 1))
		b, ok := r.nextBlock(l, *buffers.Get().(*[]byte))
		if !ok {
			l.ended, b = true, block{file: l.number, format: l.next, end: true}
		}
		b.seq = l.queued
		l.queued++
		select {
		case queue <- b:
		case <-ctx.Done():
		}
	}
	for _, l := range r.logs {
		if l.source != nil && !l.ended {
			l.source.file.Close()
		}
	}
}

// nextLog returns the file of which a block is to be read next; nil if all have ended.
func (r *run) nextLog() (next *logFile) {
	for _, l := range r.logs {
		switch {
		case l.ended:
		case r.Lateness == 0:
			return l
		case next == nil || cmp.Or(cmp.Compare(l.complete.Load(), next.complete.Load()), cmp.Compare(l.queued, next.queued)) < 0:
			next = l
		}
	}
	return next
}

// nextBlock reads the next block of a file, in buf. At the end of the file it closes that and returns false. A problem
// with it is kept.
func (r *run) nextBlock(l *logFile, buf []byte) (b block, ok bool) {
	b, ok, err := r.readBlock(l, buf)
	if err != nil {
		l.problems = append(l.problems, err)
	}
	if !ok && l.source != nil {
		l.source.file.Close()
	}
	return b, ok
}

func (r *run) readBlock(l *logFile, buf []byte) (b block, ok bool, err error) {
	if l.source == nil {
		if l.source, err = r.open(l.path); err != nil {
			return b, false, err
		}
		l.modified, l.chunker = l.source.modified, lineChunker{src: l.source}
	}
	data, tooLong := l.chunker.next(buf)
	if !l.hasLines { // programs on Windows write a byte order mark before the first line
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	if len(data) == 0 && !tooLong {
		if failure := l.chunker.failure(); failure != nil {
			return b, false, readError(l.path, failure)
		}
		if l.hasLines && !l.hasData { // each line is too long to tell the format from
			l.format, err = r.formatOf(l.path, nil)
		}
		return b, false, err
	}
	l.hasLines = true
	if len(data) > 0 && !l.hasData {
		if err := r.begin(l, data); err != nil {
			return b, false, err
		}
	}
	b = block{file: l.number, format: l.next, data: data, tooLong: tooLong}
	l.next = l.next.After(data)
	return b, true, nil
}

// begin finds the format of a file whose first lines are data.
func (r *run) begin(l *logFile, data []byte) (err error) {
	l.hasData, l.firstLine = true, firstLine(data)
	if l.format, err = r.formatOf(l.path, data); err != nil {
		if failure := l.chunker.failure(); failure != nil { // the cause, perhaps
			l.problems = append(l.problems, readError(l.path, failure))
		}
		return err
	}
	l.next = l.format
	_, l.eitherOrder = l.format.EitherOrder(data, time.Time{})
	return nil
}

// lacksYear reports whether a log that begins with sample has a line whose time has no year.
func lacksYear(f accesslog.Format, sample []byte) bool {
	if !f.Yearless() {
		return false
	}
	p, _ := f.NewParser(accesslog.Options{}) // no year, so no error
	for len(sample) > 0 {
		var line []byte
		line, sample, _ = accesslog.CutLine(sample)
		p.Parse(line, new(match.Event))
	}
	_, _, dated := p.Dated()
	return dated
}

// formatOf returns the format of a file that begins with sample.
func (r *run) formatOf(path string, sample []byte) (f accesslog.Format, err error) {
	if r.Format != "auto" {
		var ok bool
		if f, err = accesslog.ParseFormat(r.Format); err != nil {
			return f, err
		}
		if f, ok = f.Inside(sample); !ok {
			err = fmt.Errorf("%s: the format of the lines inside its lines is not known; name it, as in --format %s:clf", path, f)
		}
	} else if detected, ok := accesslog.Detect(sample); ok {
		f = detected
	} else {
		err = fmt.Errorf("%s: no known log format fits its first lines, such as %.100q; name one with --format: %s, or a spec such as csv:time=1@s,client=2",
			path, firstLine(bytes.TrimLeft(sample, "\r\n")), strings.Join(accesslog.Formats(), ", "))
	}
	if err == nil && r.Year == 0 && r.Lateness > 0 && lacksYear(f, sample) {
		return accesslog.Format{}, fmt.Errorf("%s: its times have no year, which --lateness needs from the first line on; give it with --year", path)
	}
	return f, err
}
