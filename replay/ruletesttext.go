package replay

import "io"

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
		for _, failure := range t.Failures {
			w.f("      %s\n", visible(failure))
		}
		if t.FailuresLeftOut > 0 {
			w.f("      and %d more\n", t.FailuresLeftOut)
		}
	}
	w.f("%s: %s, %d failed\n", visible(r.File), plural(len(r.Tests), "test", "tests"), r.Failed)
	return w.Flush()
}
