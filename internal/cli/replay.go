package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/server/replaypage"
	"github.com/lately-go/lately/replay"
)

// replayFlags is the flags of the replay command as they are given.
type replayFlags struct {
	config    replay.Config
	inputs    inputFlags
	rules     []string
	whatIfs   []whatIf
	algorithm string
	html      string
	json      bool
	bad       bool
	formats   bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [flags] FILE...",
		Short: "Test rules on logs: the busiest clients, and which would be refused, banned, hot",
		Long: `Replay reads logs (plain, gzip, zstd or bzip2; - is standard input) and judges their events, at
the times of the log, with the code that enforces the rules: either the rules of a file together,
as the server does, or each --limit, --ban and --hot alone.

Algorithms of --limit: ` + strings.Join(limit.AlgorithmNames(), ", ") + `.
  calendar counts in UTC, in spans of 1s, 1m, 1h, 24h and 7d or by names: 1000/day, 1000/month
  in-flight assumes that each event is under way for the whole span, since a log has no ends
  gcra and the buckets allow N at once; a rules file can set another burst

Formats (--formats shows them with examples):` + "\n" + listed(accesslog.Formats()) + `,
or a spec:
  nginx:FORMAT, apache:FORMAT                    the text of log_format, of LogFormat
  json:time=PATH@UNIT,client=PATH,object=PATH    PATH[] for a list; UNIT s, ms, us, ns, rfc3339, clf
  csv:time=N@UNIT,client=N,object=N              N is a column, from 1; tsv: alike
  object=...@path cuts the value at the first '?'

` + logCodes,
		Example: `  lately replay access.log.gz
  lately replay --limit 60/1m --ban 100/5m:1h --hot 200/1m access.log
  lately replay --rules rules.yaml --json access.log.*`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.rules, "rules", nil, "judge the rules of `FILE` together, as the server does; several are one set of rules")
	flags.Func("limit", "what if at most `N/SPAN` were allowed, such as 60/1m or 1000/day (repeatable)", f.keep(replay.Limit))
	flags.Func("ban", "what if more than `N/SPAN:DURATION` were banned, such as 100/5m:1h (repeatable)", f.keep(replay.Ban))
	flags.Func("hot", "which keys reach `N/SPAN`, or FIELD:N/SPAN (repeatable)", f.keep(replay.Hot))
	flags.StringVar(&f.config.Key, "key", "", "`KEY` to count by, as in rules files: a field, client/24, \"user | client\", or several with commas (default client; hot: object)")
	flags.StringVar(&f.algorithm, "algorithm", "sliding", "`NAME` of the algorithm of --limit (see above)")
	flags.BoolVar(&f.config.CountRefused, "count-refused", false, "count refused events toward --limit too")
	flags.BoolVar(&f.config.Compare, "compare", false, "add what each algorithm would have done under the --limit")
	f.inputs.register(cmd, &f.config)
	flags.DurationVar(&f.config.Lateness, "lateness", 0, "judge events while the log is read, in bounded memory; leave out those older than an earlier one by more than `D`")
	flags.BoolVar(&f.config.Traffic, "traffic", false, "report the most frequent statuses, methods, paths, agents and referrers, and the bytes of responses")
	flags.IntVar(&f.config.Top, "top", 0, "report the `N` busiest keys (default 20)")
	flags.StringVar((*string)(&f.config.Sort), "sort", string(replay.SortCount), "order the busiest keys by `count|peak|refused`; a peak is the most in any minute")
	flags.StringVar(&f.html, "html", "", "write the report to `FILE`, too, as a page for a browser")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	flags.BoolVar(&f.formats, "formats", false, "list the log formats with an example of each, and read no log")
	flags.BoolVar(&f.bad, "show-bad-lines", false, "show the first bad lines")
	cmd.RegisterFlagCompletionFunc("algorithm", cobra.FixedCompletions(limit.AlgorithmNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"count", "peak", "refused"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, args []string) (err error) {
	if f.formats {
		if len(args) > 0 {
			return fmt.Errorf("--formats: must be without files: it lists formats and reads no log")
		}
		return writeFormats(cmd.OutOrStdout(), f.json)
	}
	if err := f.parse(cmd, args); err != nil {
		return err
	}
	f.config.Traffic = f.config.Traffic || f.html != ""
	page, err := f.createPage()
	if err != nil {
		return err
	}
	if f.config.Lateness > 0 && os.Getenv("GOGC") == "" { // memory is worth more than time
		defer debug.SetGCPercent(debug.SetGCPercent(streamGCPercent))
	}
	report, err := reading(cmd, f.config.Progress, f.config, replay.Run)
	nothing, ok := errors.AsType[*replay.InputError](err)
	if ok && report != nil {
		report.Problems = append(report.Problems, nothing.Sentences...) // for the page
	}
	unwritten := f.finishPage(page, report)
	if ok && report != nil && f.bad {
		if err := report.WriteBadLines(cmd.OutOrStdout()); err != nil {
			nothing.Sentences = append(nothing.Sentences, fmt.Sprintf("the report cannot be written: %v", err))
		}
	}
	if err != nil {
		return inputProblem(err)
	}
	problems := append(report.Problems, unwritten...)
	if report.Events == 0 && len(problems) > 0 && !f.json {
		return inputErrorOf(problems...) // without a report of zeros
	}
	text := func(out io.Writer, style replay.TextStyle) error {
		style.Bad = f.bad
		return report.WriteText(out, style)
	}
	return inputErrorOf(f.inputs.print(cmd, f.json, report, text, problems)...)
}

// streamGCPercent is by how much the heap may grow between collections with --lateness.
const streamGCPercent = 30

// createPage creates the file of --html, if it is given, after it has validated the rest of
// the command line.
func (f *replayFlags) createPage() (*os.File, error) {
	if f.html == "" {
		return nil, nil
	}
	if err := f.config.Validate(); err != nil {
		return nil, err
	}
	return createOutput("--html", f.html, slices.Concat(f.rules, f.config.Files))
}

// createOutput creates the file of an option. It must not be one of those that are read.
func createOutput(option, path string, read []string) (*os.File, error) {
	if st, err := os.Stat(path); err == nil {
		for _, name := range read {
			if in, err := os.Stat(name); err == nil && os.SameFile(st, in) {
				return nil, fmt.Errorf("%s: %s: must not be a file that is read", option, path)
			}
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: cannot be created: %w", option, path, errors.Unwrap(err))
	}
	return file, nil
}

// finishPage writes the page of a report, if there are both, and closes its file. It returns
// a sentence about what could not be written.
func (f *replayFlags) finishPage(page *os.File, report *replay.Report) (problems []string) {
	if page == nil {
		return nil
	}
	var err error
	if report != nil {
		err = replaypage.Write(page, report, f.inputs.zone)
	}
	if err = errors.Join(err, page.Close()); err != nil {
		problems = append(problems, fmt.Sprintf("the page cannot be written: %v", err))
	}
	return problems
}

// parse fills in the replay.Config from the flags.
func (f *replayFlags) parse(cmd *cobra.Command, args []string) error {
	c := &f.config
	err := f.inputs.parse(cmd, args, c)
	if err != nil {
		return err
	}
	if c.Algorithm, err = limit.AlgorithmNamed(f.algorithm); err != nil {
		return fmt.Errorf("--algorithm: %w", err)
	}
	if cmd.Flags().Changed("rules") {
		for _, name := range []string{"algorithm", "count-refused"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s: must not be given with --rules: it is for --limit, and a rules file has it for each rule", name)
			}
		}
		if c.Rules, err = loadRules(cmd, f.rules...); err != nil {
			return err
		}
	}
	for _, given := range f.whatIfs {
		w, err := replay.ParseWhatIf(given.kind, given.text)
		if err != nil {
			return err
		}
		c.WhatIfs = append(c.WhatIfs, w)
	}
	return nil
}

// A whatIf is a --limit, --ban or --hot as it was given.
type whatIf struct {
	kind replay.Kind
	text string
}

// keep returns a function that keeps the value of one of these flags, to be parsed after
// all flags, in one list: the report has the order of the command line.
func (f *replayFlags) keep(kind replay.Kind) func(string) error {
	return func(text string) error {
		f.whatIfs = append(f.whatIfs, whatIf{kind, text})
		return nil
	}
}

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
