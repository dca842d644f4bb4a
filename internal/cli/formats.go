package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog"
)

// writeFormats lists the named formats of logs with an example of each.
func writeFormats(out io.Writer, json bool) error {
	formats := accesslog.NamedFormats()
	if json {
		return writeJSON(out, map[string]any{"formats": formats})
	}
	var b strings.Builder
	for i, f := range formats {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.Join(append([]string{f.Name}, f.Aliases...), ", "), f.About)
		for line := range strings.SplitSeq(f.Example, "\n") {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(line, "\t", "    "))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// listed joins words with commas, ten in a line.
func listed(words []string) string {
	var lines []string
	for line := range slices.Chunk(words, 10) {
		lines = append(lines, "  "+strings.Join(line, ", "))
	}
	return strings.Join(lines, ",\n")
}
