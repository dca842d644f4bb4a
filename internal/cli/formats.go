package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/lately-go/lately/accesslog"
)

// writeFormats lists the named formats of logs with an example of each.
func writeFormats(out io.Writer, json bool) error {
	formats := accesslog.NamedFormats()
	if json {
		return writeJSON(out, struct {
			Formats []accesslog.NamedFormat `json:"formats"`
		}{formats})
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

// wrapped joins words with commas, in lines of at most so many bytes.
func wrapped(words []string, width int) string {
	text, length := "", 2
	for i, word := range words {
		switch {
		case i == 0:
			text = "  "
		case length+len(", ")+len(word) > width:
			text, length = text+",\n  ", 2
		default:
			text, length = text+", ", length+2
		}
		text, length = text+word, length+len(word)
	}
	return text
}
