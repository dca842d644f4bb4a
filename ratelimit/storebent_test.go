package ratelimit_test

import (
	"context"

	"github.com/lately-go/lately/ratelimit"
)

// bent is a memory store with some methods replaced. A nil field means the original method.
type bent struct {
	*ratelimit.Memory
	decide func(r *ratelimit.Request) error
	settle func(s *ratelimit.Settlement) error
	adjust func(a *ratelimit.Adjustment) error
	update func(set *ratelimit.Set, published func()) error
	ban    func(b ratelimit.BanRecord) error
	unban  func(rule string, key []byte) (bool, error)
}

func (b *bent) Decide(_ context.Context, batch []*ratelimit.Request) {
	for _, r := range batch {
		r.Err = b.decideOne(r)
	}
}

func (b *bent) decideOne(r *ratelimit.Request) error {
	if b.decide != nil {
		return b.decide(r)
	}
	return b.Memory.Decided(r)
}

func (b *bent) Settle(_ context.Context, s *ratelimit.Settlement) error {
	if b.settle != nil {
		return b.settle(s)
	}
	return b.Memory.Settle(context.Background(), s)
}

func (b *bent) Adjust(_ context.Context, a *ratelimit.Adjustment) error {
	if b.adjust != nil {
		return b.adjust(a)
	}
	return b.Memory.Adjust(context.Background(), a)
}

func (b *bent) Update(_ context.Context, set *ratelimit.Set, published func()) error {
	if b.update != nil {
		return b.update(set, published)
	}
	return b.Memory.Update(context.Background(), set, published)
}

func (b *bent) Ban(_ context.Context, r ratelimit.BanRecord) error {
	if b.ban != nil {
		return b.ban(r)
	}
	return b.Memory.Ban(context.Background(), r)
}

func (b *bent) Unban(_ context.Context, rule string, key []byte) (bool, error) {
	if b.unban != nil {
		return b.unban(rule, key)
	}
	return b.Memory.Unban(context.Background(), rule, key)
}
