package yamlfile

import (
	"iter"
	"strings"
)

// Documents yields the YAML documents in text, each with the number of lines before it. Documents
// that are empty are left out, unless there is no other. Given all documents, the parser loses
// those after an empty one.
func Documents(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		begin, first, content, any := 0, 0, false, false
		at, lines := 0, 0
		for line := range strings.Lines(text) {
			if rest, mark := strings.CutPrefix(line, "---"); mark && strings.TrimLeft(rest[:min(len(rest), 1)], " \t\r\n") == "" {
				if content {
					if any = true; !yield(first, text[begin:at]) {
						return
					}
				}
				begin, first, content, line = at, lines, false, rest
				at += len("---")
			}
			at, lines = at+len(line), lines+1
			line = strings.TrimSpace(line)
			content = content || line != "" && line != "..." && line[0] != '#'
		}
		if content || !any {
			yield(first, text[begin:])
		}
	}
}
