// Command lately replays access logs through rules, and serves the same rules to
// programs in any language.
//
// Exit codes: 0 success; 1 some input could not be read or is wrong (what could be
// read is reported), or the output could not be written; 2 the command line or the
// rules file is wrong, and nothing was done; 130 interrupted.
package main

import (
	"os"

	"github.com/lately-go/lately/internal/cli"
)

func main() { os.Exit(cli.Main()) }
