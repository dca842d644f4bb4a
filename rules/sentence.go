package rules

import (
	"fmt"

	"github.com/lately-go/lately/internal/rule/sentence"
)

// Sentences returns the meaning of the file, a line for each field, counter and rule and one for
// the allow list: fields, counters, limits, bans, hot, allow.
func (f *File) Sentences() []string {
	var all []string
	for _, s := range f.Limits.Internal().Sources() {
		all = append(all, sourceSentence(&s))
	}
	for i := range f.Counters {
		c := &f.Counters[i]
		all = append(all, sentence.Counter(c.Name, c.When, c.Key, c.Spans))
	}
	for _, r := range f.Limits.Rules() {
		all = append(all, sentence.Limit(r))
	}
	for i := range f.Hot {
		all = append(all, sentence.Hot(&f.Hot[i]))
	}
	if allowed := f.Allow.subjects(); len(allowed) > 0 {
		all = append(all, fmt.Sprintf("allow: %s never limited and never banned.", sentence.Subject(allowed)))
	}
	if crawlers := f.Allow.crawlers(); crawlers != "" {
		all = append(all, crawlers)
	}
	return all
}
