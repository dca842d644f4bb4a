package hotkeys

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
)

// maxIgnored bounds the keys that are ignored by hand.
const maxIgnored = 1000

// key returns the rule of that name and the key that it makes of these values, for
// a change.
func (k *Keys) key(rule string, values []string) (r *hotRule, key string, err error) {
	if r, err = k.rules.Load().named(rule); err != nil {
		return nil, "", err
	}
	joined, err := keys.Join(nil, &r.Key, values)
	return r, string(joined), err
}

// Add makes a key hot for that long, or for the hold of its rule if ttl is 0, unless it
// is hot for longer. ttl is at most window.MaxSpan.
func (k *Keys) Add(rule string, values []string, ttl time.Duration) (listed api.HotKey, err error) {
	r, key, err := k.key(rule, values)
	if err != nil {
		return listed, err
	}
	ttl = cmp.Or(ttl, r.hold())
	now := k.config.Now()
	switch err := r.keys.SetHot(key, now.Add(ttl)); {
	case errors.Is(err, hotkey.ErrNever):
		return listed, apierror.New(api.Conflict, "the key is ignored under hot rule %q, by hand or by never in the rules file: end that first", rule)
	case err != nil:
		return listed, apierror.New(api.Overload, "hot rule %q: no memory for another key", rule)
	}
	e := r.entry(&hotkey.Edge{Key: key, Time: now, Until: now.Add(ttl)})
	e.Hand = true
	e.Lo, e.Hi = r.count(now, key)
	if !slices.Contains(r.Always, key) {
		k.add(e)
	}
	if hot, ok := k.list.get(r.Name, e.ID); ok {
		return hot.HotKey(now), nil
	}
	return listed, apierror.New(api.Overload, "hot rule %q: no memory for another key that is hot", rule)
}

// Remove makes a key cold and deletes its counts. It reports whether the key was hot.
func (k *Keys) Remove(rule string, values []string) (bool, error) {
	r, key, err := k.key(rule, values)
	if err != nil {
		return false, err
	}
	if slices.Contains(r.Always, key) {
		return false, apierror.New(api.BadArg, "the key is in always of hot rule %q: change the rules file", rule)
	}
	r.keys.Remove(key)
	return k.list.remove(r.Name, key), nil
}

// Changed notifies watchers that the value of a key changed, and reports whether the key
// is hot.
func (k *Keys) Changed(rule string, values []string) (bool, error) {
	r, key, err := k.key(rule, values)
	if err != nil {
		return false, err
	}
	return k.list.changed(r.Name, key), nil
}

// ignoredUnder returns the keys that are ignored by hand under a rule.
func (k *Keys) ignoredUnder(rule string) []api.Key {
	all := []api.Key{}
	for _, ignored := range *k.ignored.Load() {
		if ignored.Rule == rule {
			all = append(all, ignored.Key)
		}
	}
	return all
}

// Ignore has a key never counted under a rule, and so never hot; off ends that.
func (k *Keys) Ignore(rule string, key []string, off bool) error {
	k.mu.Lock() // no other rules meanwhile
	defer k.mu.Unlock()
	r, joined, err := k.key(rule, key)
	if err != nil {
		return err
	}
	was, values := *k.ignored.Load(), keyvalue.All(r.Key, joined)
	at := slices.IndexFunc(was, func(k api.RuleKey) bool { return k.Rule == rule && slices.Equal(k.Values(), values) })
	if !off && at < 0 && len(was) >= maxIgnored {
		return apierror.New(api.Overload, "%d keys are ignored by hand, the most that can be: use never in the rules file", maxIgnored)
	}
	if err := r.keys.SetNever(joined, !off); err != nil {
		return apierror.New(api.BadArg, "the key is in always or never of hot rule %q: change the rules file", rule)
	}
	next := slices.Clone(was)
	switch {
	case off && at >= 0:
		next = slices.Delete(next, at, at+1)
	case !off && at < 0:
		next = append(next, api.RuleKey{Rule: rule, Key: api.KeyOf(values...)})
	}
	k.ignored.Store(&next)
	if !off {
		k.list.remove(r.Name, joined)
	}
	return nil
}
