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

// once remembers names until their ends, and reports which were remembered before, by any server. It returns nil if the store
// does not answer.
func (s *sharedStore) once(names []string, ends []time.Time) []bool {
	client := s.conn.client()
	if client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	commands := make(rueidis.Commands, len(names))
	for i, name := range names {
		lives := max(time.Until(ends[i]), 0) + onceSkew
		commands[i] = client.B().Set().Key(cmp.Or(s.config.Prefix, "lately:") + "~" + name).Value("1").Nx().PxMilliseconds(lives.Milliseconds()).Build()
	}
	before := make([]bool, len(names))
	for i, reply := range client.DoMulti(ctx, commands...) {
		err := reply.Error()
		if before[i] = rueidis.IsRedisNil(err); err != nil && !before[i] {
			s.note(err)
			return nil
		}
	}
	return before
}
