package server

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/rueidis"
)

const (
	// onceTimeout bounds a call by default, as others.
	onceTimeout = 20 * time.Millisecond

	// onceSkew is by how much the clocks of servers may differ: for so long after its end a name is remembered.
	onceSkew = time.Minute
)

// once remembers names until their ends, and reports which the store has had before, from any server: none of those about
// which it does not answer.
func (s *sharedStore) once(names []string, ends []time.Time) []bool {
	before := make([]bool, len(names))
	client := s.conn.client()
	if client == nil {
		return before
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	commands := make(rueidis.Commands, len(names))
	for i, name := range names {
		lives := max(time.Until(ends[i]), 0) + onceSkew
		commands[i] = client.B().Set().Key(cmp.Or(s.config.Prefix, "lately:") + "~" + name).Value("1").Nx().PxMilliseconds(lives.Milliseconds()).Build()
	}
	var failed error
	for i, reply := range client.DoMulti(ctx, commands...) {
		err := reply.Error()
		if before[i] = rueidis.IsRedisNil(err); err != nil && !before[i] {
			failed = err
		}
	}
	s.note(failed)
	return before
}
