package latelyredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrEvicts means that the server evicts keys when its memory is full; see [Store.Check].
var ErrEvicts = errors.New("must be noeviction, or the server evicts limits and bans when its memory is full")

// Check verifies that the server, or each node of a cluster, can keep limits and bans. Call it at
// the start of a program. The error reports that a server does not answer, or that its ACL or Lua
// lacks a function that the store needs, or is [ErrEvicts]: evicting a key resets a limit or ends a
// ban.
func (s *Store) Check(ctx context.Context) error {
	nodes, err := s.conn.Nodes(ctx)
	if err != nil {
		return err
	}
	memory := command{script: s.layout.Load().scripts.memory, full: true}
	for address, node := range nodes {
		err := node.Run(ctx, []Command{memory.sent()})[0].evicts()
		if err != nil && len(nodes) > 1 {
			err = fmt.Errorf("%s: %w", address, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// evicts returns an error if the memory of the server, as r describes it, evicts keys.
func (r Reply) evicts() error {
	if r.Err != nil {
		return r.Err
	}
	info := make(map[string]string)
	for line := range strings.Lines(r.Data) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" && policy != "" && info["maxmemory"] != "0" {
		return fmt.Errorf("latelyredis: maxmemory-policy: %s: %w", policy, ErrEvicts)
	}
	return nil
}
