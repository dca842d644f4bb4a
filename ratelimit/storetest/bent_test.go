package storetest_test

import (
	"iter"

	"github.com/lately-go/lately/ratelimit"
)

// bent is a memory store of which some methods do something else. A nil field is
// the method itself.
type bent struct {
	*ratelimit.Memory
	decide func(r *ratelimit.Request) error
	settle func(s *ratelimit.Settlement) error
	refund func(r *ratelimit.Refund) error
	reset  func(set *ratelimit.Set, subjects []ratelimit.Subject) error
	update func(set *ratelimit.Set, published func()) error
	ban    func(b ratelimit.BanRecord) error
	unban  func(rule string, key []byte) (bool, error)
	bans   func() iter.Seq2[ratelimit.BanRecord, error]
}

func (b *bent) Decide(r *ratelimit.Request) error {
	if b.decide != nil {
		return b.decide(r)
	}
	return b.Memory.Decide(r)
}

func (b *bent) Settle(s *ratelimit.Settlement) error {
	if b.settle != nil {
		return b.settle(s)
	}
	return b.Memory.Settle(s)
}

func (b *bent) Refund(r *ratelimit.Refund) error {
	if b.refund != nil {
		return b.refund(r)
	}
	return b.Memory.Refund(r)
}

func (b *bent) Reset(set *ratelimit.Set, subjects []ratelimit.Subject) error {
	if b.reset != nil {
		return b.reset(set, subjects)
	}
	return b.Memory.Reset(set, subjects)
}

func (b *bent) Update(set *ratelimit.Set, published func()) error {
	if b.update != nil {
		return b.update(set, published)
	}
	return b.Memory.Update(set, published)
}

func (b *bent) Ban(r ratelimit.BanRecord) error {
	if b.ban != nil {
		return b.ban(r)
	}
	return b.Memory.Ban(r)
}

func (b *bent) Unban(rule string, key []byte) (bool, error) {
	if b.unban != nil {
		return b.unban(rule, key)
	}
	return b.Memory.Unban(rule, key)
}

func (b *bent) Bans() iter.Seq2[ratelimit.BanRecord, error] {
	if b.bans != nil {
		return b.bans()
	}
	return b.Memory.Bans()
}
