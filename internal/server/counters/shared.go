package counters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/latelyredis"
)

// Counters that servers share are known by a letter for what makes them, their names, and for
// those of rules files the fields of their keys: a counter by other fields is another one.
const (
	sharedDeclared = "d"
	sharedDynamic  = "a"
)

// share makes c, which nobody has used yet, one that servers share.
func (c *Counter) share(with *latelyredis.Counters) (err error) {
	name := sharedDynamic + c.Name
	if !c.dynamic {
		name = sharedDeclared + c.Name + "\x00" + strings.Join(c.Key.Fields(), ",")
	}
	config, windows := c.tableOf()
	if c.shared, err = with.Counter(name, config, windows...); err != nil {
		return fmt.Errorf("counter %q: %w", c.Name, err)
	}
	c.table = nil
	return nil
}

// share shares the counters of next, and no more those that only was has.
func (all *Counters) share(next, was *Set) error {
	for _, c := range next.all {
		if slices.Contains(was.all, c) {
			continue
		}
		if err := c.share(all.shared); err != nil {
			return err
		}
		all.shared.Refresh()
	}
	for _, c := range was.all {
		if !slices.Contains(next.all, c) {
			all.shared.Remove(c.shared)
		}
	}
	return nil
}

// elsewhere creates a counter that another server has created, unless there are too many.
func (all *Counters) elsewhere(name string) {
	if name, ok := strings.CutPrefix(name, sharedDynamic); ok {
		_, _ = all.Create(name)
	}
}
