package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Counters that servers share are known by a letter for what makes them, their names, and for
// those of rules files the fields of their keys: a counter by other fields is another one.
const (
	sharedDeclared = "d"
	sharedDynamic  = "a"
)

// share makes c, which nobody has used yet, one that servers share, if they do.
func (e *Engine) share(c *counter) (err error) {
	if e.counters == nil {
		return nil
	}
	name := sharedDynamic + c.Name
	if !c.dynamic {
		name = sharedDeclared + c.Name + "\x00" + strings.Join(c.Key.Fields(), ",")
	}
	config, windows := c.tableOf()
	if c.shared, err = e.counters.Counter(name, config, windows...); err != nil {
		return fmt.Errorf("counter %q: %w", c.Name, err)
	}
	c.table = nil
	return nil
}

// shareAll shares the counters of r, and no more those that only old has. Other servers may have
// counted in new ones before.
func (e *Engine) shareAll(r, old *ruleSet) error {
	if e.counters == nil {
		return nil
	}
	for _, c := range r.counters {
		if slices.Contains(old.counters, c) {
			continue
		}
		if err := e.share(c); err != nil {
			return err
		}
		e.counters.Refresh()
	}
	for _, c := range old.counters {
		if !slices.Contains(r.counters, c) {
			e.counters.Remove(c.shared)
		}
	}
	return nil
}

// counterElsewhere creates a counter that another server has created, unless there are too many.
func (e *Engine) counterElsewhere(name string) {
	if name, ok := strings.CutPrefix(name, sharedDynamic); ok {
		_, _ = e.createCounter(name)
	}
}
