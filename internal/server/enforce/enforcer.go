package enforce

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/loglimit"
	"github.com/lately-go/lately/ratelimit"
)

// Targets says what refuses banned clients, besides the server. Its zero value is nothing.
type Targets struct {
	// NFTables has the kernel drop packets of banned networks, in the network namespace
	// of this process.
	NFTables bool

	// DenyFile has a proxy read the banned networks from a file.
	DenyFile DenyFile

	// CrowdSec has CrowdSec's bouncers ask for bans.
	CrowdSec bool

	// Webhook sends bans and their ends to a URL.
	Webhook Webhook
}

// Any reports whether anything is set.
func (t *Targets) Any() bool { return *t != Targets{} }

// Validate returns an error that names the wrong setting. It reads no files.
func (t *Targets) Validate() error { return errors.Join(t.DenyFile.validate(), t.Webhook.validate()) }

// Config has the settings of an Enforcer. All but Targets must be set.
type Config struct {
	Targets

	// Rule returns the rule of that name in force, or an error.
	Rule func(name string) (*ratelimit.Rule, error)

	// Protected reports whether network has an address that is never refused, besides
	// addresses that no client on the internet has.
	Protected func(network netip.Prefix) bool

	// Now returns the time by which bans end.
	Now func() time.Time

	// MaxNetworks is how many networks are kept, those whose bans ended in the last hour
	// included. Each takes up to NetworkBytes.
	MaxNetworks int

	// Log receives what fails and which bans are not enforced.
	Log *slog.Logger
}

// NetworkBytes is the memory of a network, in bytes.
const NetworkBytes = 512

// An Enforcer has targets refuse what is banned. Make one with [New], call [Enforcer.Replace]
// with all bans, then [Enforcer.Run]. It is safe for concurrent use, but changes must come
// from one goroutine, in the order in which they happened.
type Enforcer struct {
	// CrowdSec answers CrowdSec's bouncers; nil if Targets.CrowdSec is not set.
	CrowdSec *CrowdSec

	config  Config
	log     *slog.Logger // with a limited rate
	bans    *bans
	runners []*runner

	mu      sync.Mutex
	skipped [skips]int
}

// New returns an Enforcer without bans. The error names the field that is wrong, or a
// program that is missing.
func New(c Config) (*Enforcer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := &Enforcer{config: c, log: slog.New(loglimit.New(c.Log.Handler())), bans: newBans(c.MaxNetworks, c.Now)}
	return e, e.addTargets()
}

// addTargets adds what is set.
func (e *Enforcer) addTargets() error {
	if e.config.NFTables {
		t, err := newNFTables(e.config.Now)
		if err != nil {
			return err
		}
		e.follow("nftables", t, pace{pause: 50 * time.Millisecond})
	}
	if e.config.DenyFile.Path != "" {
		e.follow("file", newDenyFile(e.config.DenyFile), e.config.DenyFile.pace())
	}
	if e.config.CrowdSec {
		e.config.Log.Warn("crowdsec: CrowdSec's firewall bouncer in mode nftables refuses only the first address of a network, so bans of networks, such as the /64 of IPv6 clients, are not in force there: "+
			"use its mode iptables or ipset, or lately serve --nftables on that host", "see", "docs/enforcement.md")
		e.CrowdSec = &CrowdSec{bans: e.bans, now: e.config.Now, bouncers: make(map[string]bouncer)}
	}
	if e.config.Webhook.URL != "" {
		t, err := newWebhook(e.config.Webhook, e.config.Now)
		if err != nil {
			return err
		}
		e.follow("webhook", t, pace{pieces: true, limit: webhookBatch, pause: 100 * time.Millisecond})
	}
	return nil
}

// follow adds a target.
func (e *Enforcer) follow(name string, t target, p pace) {
	watch := e.bans.watch()
	watch.delayEnds = p.ended > 0
	e.runners = append(e.runners, &runner{target: t, pace: p, name: name, log: e.config.Log, bans: e.bans, watch: watch})
}

// Replace makes the bans all that hold. It is for the start, after changes of the rules and
// whenever changes may have been missed. If reading bans fails, it returns that error and
// changes nothing.
func (e *Enforcer) Replace(bans iter.Seq2[api.Ban, error]) error {
	var skipped [skips]int
	all := make(map[netip.Prefix][]api.Ban)
	for b, err := range bans {
		if err != nil {
			return err
		}
		network, why := e.judge(&b)
		if why == enforced && all[network] == nil && len(all) >= e.config.MaxNetworks && !e.bans.holds(network) {
			why = noMemory // also for the memory of all
		}
		if skipped[why]++; why == enforced {
			all[network] = append(all[network], b)
		}
	}
	skipped[noMemory] += e.bans.replace(all)
	e.mu.Lock()
	e.skipped = skipped
	e.mu.Unlock()
	if n := skipped[noMemory]; n > 0 {
		e.log.Warn("networks are not enforced: there are too many", "networks", n, "max", e.config.MaxNetworks)
	}
	return nil
}

// Add enforces a ban that began, or was made longer. A ban is counted and not enforced if its
// key is not a client alone or the client is neither an address nor the network that the rule
// makes of one, nor was it banned by hand as a network of several; if its rule is a shadow
// rule; if it is of a loopback or link-local address or another one that no client on the internet has; if it overlaps [Config.Protected]; if a rule began it and it is wider
// than /16 of IPv4 or /32 of IPv6; or if there are MaxNetworks.
func (e *Enforcer) Add(b *api.Ban) {
	network, why := e.judge(b)
	if why == enforced && !e.bans.add(network, *b) {
		why = noMemory
	}
	if why == enforced || why == over {
		return
	}
	e.mu.Lock()
	e.skipped[why]++
	e.mu.Unlock()
	if why != notAddress && why != shadow { // which the operator has chosen
		e.log.Warn("a ban is not enforced outside of this server", "rule", b.Rule, "key", b.Values(), "why", skipNames[why])
	}
}

// judge returns the network of b and why it is not to be enforced.
func (e *Enforcer) judge(b *api.Ban) (network netip.Prefix, why skip) {
	rule, err := e.config.Rule(b.Rule)
	if err != nil || !b.Until.After(e.config.Now()) {
		return network, over
	}
	byHand := b.Source != ruleSource
	if network, why = networkOf(rule, b.Values(), byHand); why == enforced {
		why = guard(network, e.config.Protected, byHand)
	}
	return network, why
}

// Remove ends the ban of a key under a rule.
func (e *Enforcer) Remove(rule string, key []string) {
	if r, err := e.config.Rule(rule); err == nil {
		if network, _ := networkOf(r, key, true); network.IsValid() {
			e.bans.remove(network, rule)
		}
	}
}

// Run has the targets follow the bans until ctx is done. What they refuse then stays
// refused until it runs out: a server that restarts interrupts nothing.
func (e *Enforcer) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, r := range e.runners {
		running.Go(func() { r.run(ctx) })
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-second.C:
			e.bans.expire()
		}
	}
	running.Wait()
}

// Status returns the state of e.
func (e *Enforcer) Status() *api.Enforcement {
	s := &api.Enforcement{Networks: e.bans.count(), Skipped: make(map[string]int), Targets: []api.EnforcementTarget{}}
	e.mu.Lock()
	for why := notAddress; why < skips; why++ {
		s.Skipped[skipNames[why]] = e.skipped[why]
	}
	e.mu.Unlock()
	for _, r := range e.runners {
		s.Targets = append(s.Targets, r.status())
	}
	return s
}
