package replay

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the results for people, each test on a line.
func (r *TestReport) WriteText(out io.Writer, style TextStyle) error {
	w := newTextWriter(out, style)
	for i := range r.Tests {
		t := &r.Tests[i]
		if len(t.Failures) == 0 {
			w.f("ok    %s (%s)\n", visible(t.Name), plural(int(t.Events), "event", "events"))
			continue
		}
		w.f("FAIL  %s\n", visible(t.Name))
		for _, failure := range t.lines() {
			w.f("      %s\n", failure)
		}
	}
	w.f("%s: %s, %d failed\n", visible(r.File), plural(len(r.Tests), "test", "tests"), r.Failed)
	return w.Flush()
}

// lines returns the failures for people.
func (t *TestResult) lines() (lines []string) {
	for _, failure := range t.Failures {
		lines = append(lines, visible(failure))
	}
	if t.FailuresLeftOut > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", t.FailuresLeftOut))
	}
	return lines
}

// What a report in the XML of JUnit has, as CI systems read it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes reports as one XML document in JUnit's format, which CI systems
// read, with a suite for each report.
func WriteJUnit(out io.Writer, reports []*TestReport) error {
	var all junitSuites
	for _, r := range reports {
		suite := junitSuite{Name: visible(r.File), Tests: len(r.Tests), Failures: r.Failed}
		for i := range r.Tests {
			t := &r.Tests[i]
			c := junitCase{Name: visible(t.Name), Class: visible(r.Rules), File: visible(r.File), Line: t.Line}
			if lines := t.lines(); len(lines) > 0 {
				c.Failure = &junitFailure{Message: lines[0], Text: strings.Join(lines, "\n")}
			}
			suite.Cases = append(suite.Cases, c)
		}
		all.Tests, all.Failures = all.Tests+suite.Tests, all.Failures+suite.Failures
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(out)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
