package latelyredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrEvicts is the error of [Store.Check] for a server that evicts keys when its memory is full.
var ErrEvicts = errors.New("must be noeviction, or the server evicts limits and bans when its memory is full")

// Check asks the server, or each node of a cluster, whether it can keep what the store counts, for a
// program to say at its start. The error is that a server does not answer, that its ACL or its Lua
// lacks what the store needs, or [ErrEvicts]: an evicted key is a fresh window, or a ban that is over.
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
