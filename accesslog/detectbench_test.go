package accesslog_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
)

func BenchmarkDetect(b *testing.B) {
	for name, sample := range map[string]string{
		"clf":     strings.Repeat(exampleLine0("clf")+"\n", 1500),
		"unknown": strings.Repeat("a line of words that no format knows, with numbers 12 and 13: x=1\n", 3000),
		"stamped": strings.Repeat("2018-04-17 06:25:06 a line of words that no format knows, with numbers 12 and 13\n", 3000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				accesslog.Detect([]byte(sample))
			}
		})
	}
}
