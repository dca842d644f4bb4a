package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
)

// testFlags is the flags of the test command as they are given.
type testFlags struct {
	junit string
	json  bool
	geo   geoFlag
}

func newTest() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test [flags] RULES [TESTS...]",
		Short: "Test a rules file: events and their expected outcomes, keys that must never be refused",
		Long: `Test runs the tests of a rules file. They are in a file beside it, rules.test.yaml for
rules.yaml, unless other files are given. The server does not read them.

A test has events, with their times and expected outcomes, or logs, and may name keys that must
never be refused. Each test starts with all counts at zero. docs/log-to-rule.md has the format.

Exit codes: 0 all tests passed; 1 a test failed, or the output could not be written; 2 the command line,
the rules file or a test file is wrong, and no test was run; 130 interrupted.`,
		Example: `  lately test rules.yaml
  lately test --junit report.xml rules.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("test: 0 arguments: must be a rules file, and test files if they are not beside it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	cmd.Flags().StringVar(&f.junit, "junit", "", "write the results to `FILE`, too, as XML in the form of JUnit")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the results as JSON")
	f.geo.register(cmd.Flags())
	return cmd
}

// testsBeside returns the name of the test file beside a rules file.
func testsBeside(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + ".test" + ext
}

func (f *testFlags) run(cmd *cobra.Command, args []string) error {
	file, err := loadRules(cmd, args[0])
	if err != nil {
		return err
	}
	paths := args[1:]
	if len(paths) == 0 {
		paths = []string{testsBeside(args[0])}
		if _, err := os.Stat(paths[0]); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("test: %s: missing: must have the tests of %s, or test files must be given", paths[0], args[0])
		}
	}
	db, err := geo.Open(f.geo...)
	if err != nil {
		return err
	}
	var locate func(*match.Event)
	if db != nil {
		locate = db.Set
	}
	if err := db.Check(file); err != nil {
		complain(cmd.ErrOrStderr(), "warning: "+err.Error()+"; without it, events of tests have it only if they name it")
	}
	var reports []*replay.TestReport
	for _, path := range paths {
		r, err := replay.Test(cmd.Context(), file, path, locate)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	return f.report(cmd, reports)
}

func (f *testFlags) report(cmd *cobra.Command, reports []*replay.TestReport) error {
	failed := 0
	for _, r := range reports {
		failed += r.Failed
	}
	text := func(out io.Writer, style replay.TextStyle) (err error) {
		for _, r := range reports {
			err = errors.Join(err, r.WriteText(out, style))
		}
		return err
	}
	problems := new(inputFlags).print(cmd, f.json, map[string]any{"files": reports}, text, nil)
	if f.junit != "" {
		if err := writeJUnit(f.junit, reports); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if failed == 1 {
		problems = append(problems, "1 test failed")
	} else if failed > 1 {
		problems = append(problems, fmt.Sprintf("%d tests failed", failed))
	}
	return inputErrorOf(problems...)
}

func writeJUnit(path string, reports []*replay.TestReport) error {
	file, err := createOutput("--junit", path, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(replay.WriteJUnit(file, reports), file.Close()); err != nil {
		return fmt.Errorf("--junit: %s: cannot be written: %w", path, err)
	}
	return nil
}
