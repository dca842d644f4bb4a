package latelyredis

import (
	"context"
	"fmt"

	"github.com/lately-go/lately/internal/store/secret"
)

// hashKeyScript sets a secret if there is none, and returns the one there is.
var hashKeyScript = newScript("redis.call('SET', KEYS[1], ARGV[1], 'NX') return redis.call('GET', KEYS[1])")

// HashKey returns the key for digests of hashed fields, which all processes with this prefix and
// servers of Lately share. The first process writes a random secret to Redis, from which the key is
// derived. A middleware without a HashKey of its own uses it.
func (s *Store) HashKey(ctx context.Context) ([32]byte, error) {
	offered := secret.New().Value()
	c := command{script: hashKeyScript, full: true, keys: []string{s.prefix + "{nodes}:secret"}, args: []string{offered.Text()}}
	reply := s.conn.Run(ctx, []Command{c.sent()})[0]
	if reply.Err != nil {
		return [32]byte{}, fmt.Errorf("latelyredis: the key of hashed fields: %w", reply.Err)
	}
	found, err := secret.Parse(reply.Data)
	if err != nil {
		return [32]byte{}, fmt.Errorf("latelyredis: key %s: %w, or be deleted, which makes all digests others", c.keys[0], err)
	}
	own := secret.New()
	own.Set(found)
	return *own.Key(secret.FieldLabel), nil
}
