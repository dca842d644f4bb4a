package follow

import (
	"strings"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/file/fileperm"
)

// patternFiles is what was found in the files of patterns of a format.
type patternFiles struct {
	used, seen string // the contents that are in use, and those of the last look
}

// maxPatternBytes bounds the size of a file of patterns: longer files exceed the limits of a
// format.
const maxPatternBytes = 1 << 20

// readPatterns reads the files of patterns again, and uses them for the lines from now on, if their contents have changed and
// stayed the same between two looks. If they have mistakes, the old patterns stay in use.
func (f *Follower) readPatterns(now time.Time) {
	if now.Sub(f.patternsRead) < discover {
		return
	}
	f.patternsRead = now
	for text := range f.patternFormats() {
		contents := contentsOf(filesOfPatterns(text))
		files := f.patterns[text]
		if files == nil {
			f.patterns[text] = &patternFiles{contents, contents}
			continue
		}
		settled := contents == files.seen
		if files.seen = contents; contents == files.used || !settled {
			continue
		}
		files.used = contents
		parsed, err := accesslog.ParseFormat(text)
		f.usePatterns(parsed, text, err)
	}
}

// patternFormats returns the texts of the formats that have files of patterns.
func (f *Follower) patternFormats() map[string]bool {
	f.mu.Lock()
	defer f.unlock()
	all := map[string]bool{}
	add := func(format accesslog.Format) {
		if text := format.String(); filesOfPatterns(text) != nil {
			all[text] = true
		}
	}
	for i := range f.config.Logs {
		add(f.config.Logs[i].Format)
	}
	for s := range f.sources() {
		add(s.reader().format)
	}
	return all
}

// usePatterns parses the text of a format again and replaces the format, unless
// there is an error.
func (f *Follower) usePatterns(format accesslog.Format, text string, err error) {
	f.mu.Lock()
	defer f.unlock()
	if err != nil {
		f.log.Error("the files of patterns have changed and cannot be used: the old patterns stay in use", "format", text, "error", err)
		return
	}
	f.log.Info("the files of patterns have changed, and are in use", "format", text)
	for i := range f.config.Logs {
		if f.config.Logs[i].Format.String() == text {
			f.config.Logs[i].Format = format
		}
	}
	for s := range f.sources() {
		if r := s.reader(); r.format.String() == text {
			r.format = format
		}
	}
}

// filesOfPatterns returns the files that a format such as regex:FILE,FILE or journald-json:regex:FILE names, nil if it has none.
func filesOfPatterns(format string) []string {
	outer, list, ok := strings.Cut(format, "regex:")
	if !ok || outer != "" && strings.IndexByte(outer, ':') != len(outer)-1 {
		return nil
	}
	return strings.Split(list, ",")
}

// contentsOf returns what identifies the contents of files, also of those that cannot be read.
func contentsOf(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		data, err := fileperm.ReadFile(path, maxPatternBytes)
		if err != nil {
			data = []byte(err.Error())
		}
		b.Write(data)
		b.WriteByte(0)
	}
	return b.String()
}
