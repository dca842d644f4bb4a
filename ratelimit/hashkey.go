package ratelimit

import "context"

// A keyHolder is a store that holds the key of hashed fields for the processes that share it.
type keyHolder interface {
	HashKey(ctx context.Context) ([32]byte, error)
}

// HashKey returns the secret key of the digests of hashed fields that the store holds for all processes which share it, and
// false if it holds none, as the memory of a process. A middleware calls it that has no key of its own. The error is the store's.
func (l *Limiter) HashKey(ctx context.Context) (key [32]byte, held bool, err error) {
	holder, held := l.store.(keyHolder)
	if held {
		key, err = holder.HashKey(ctx)
	}
	return key, held, err
}
