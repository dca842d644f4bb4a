package engine

import (
	"context"
	"net/netip"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/crawlers"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
)

// verifyCrawlers allows the crawlers of the rules' allow section that DNS verifies, until e is closed.
func (e *Engine) verifyCrawlers() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.done.Go(func() {
		<-e.stop
		cancel()
	})
	e.crawlers.Run(ctx, e.exempt)
}

// exempt allows the clients that are crawlers, and ends the bans of the one that was added, if it is not nil.
func (e *Engine) exempt(all []netip.Prefix, added *crawlers.Client) {
	e.exempted.Store(new(address.NewSet(all...)))
	e.limiter.Internal().Exempt(all)
	if added == nil {
		return
	}
	client := added.Addr.String()
	e.log.Info("a client that was refused is a crawler, and is allowed for a day", "client", client, "crawler", added.Operator, "host", added.Host)
	set := e.limiter.Set()
	for _, r := range set.Rules() {
		if len(r.Key.Fields()) != 1 || keyvalue.ClientIndex(r.Key) != 0 {
			continue
		}
		key := client
		if len(keyvalue.Fields(r.Key)) > 1 {
			key = match.Client.String() + ":" + client // one of several alternatives
		}
		if _, err := e.bans.Unban(r.Name, []string{key}); err != nil {
			e.log.Error("the ban of a crawler was not ended", "client", client, "rule", r.Name, "error", err)
		}
	}
}

// Allows reports whether network has an address of the allow list or of a crawler.
func (e *Engine) Allows(network netip.Prefix) bool {
	return e.rules.Load().allow.Overlaps(network) || e.exempted.Load().Overlaps(network)
}
