package ratelimit

import "context"

// A keyHolder is a store that holds the key of hashed fields for the processes that share it.
type keyHolder interface {
	HashKey(ctx context.Context) ([32]byte, error)
}

// HashKey returns the secret key for digests of hashed fields that all processes of a shared
// store use. held is false if the store has no such key; the memory store never has one.
// Middleware without a key of its own calls it. The error is the store's.
func (l *Limiter) HashKey(ctx context.Context) (key [32]byte, held bool, err error) {
	holder, held := l.store.(keyHolder)
	if held {
		key, err = holder.HashKey(ctx)
	}
	return key, held, err
}
