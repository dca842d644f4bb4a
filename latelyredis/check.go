package latelyredis

import (
	"context"
	"fmt"
	"strings"
)

// Check asks the server whether it can keep what the store counts, for a program to say at
// its start. The error is that the server does not answer, that its ACL or its Lua lacks what
// the store needs, or that it evicts keys when its memory is full: an evicted key is a fresh
// window, or a ban that is over.
func (s *Store) Check(ctx context.Context) error {
	l := s.layout.Load()
	c := call{command: command{script: l.scripts.memory}}
	s.send(ctx, l, []*call{&c})
	if c.err != nil {
		return c.err
	}
	info := make(map[string]string)
	for line := range strings.Lines(c.data) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" && policy != "" && info["maxmemory"] != "0" {
		return fmt.Errorf("latelyredis: maxmemory-policy: %s: must be noeviction, or the server evicts limits and bans when its memory is full", policy)
	}
	return nil
}
