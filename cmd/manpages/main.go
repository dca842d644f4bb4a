// Command manpages writes the man pages of lately to a directory, for packages. The
// environment variable SOURCE_DATE_EPOCH is their date.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/lately-go/lately/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpages DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

// write writes a page for lately and for each of its commands.
func write(dir string) error {
	root := cli.Root()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Source: "lately " + cli.Version(), Manual: "Lately"}, dir)
}
