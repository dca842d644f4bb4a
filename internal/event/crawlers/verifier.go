// Package crawlers finds out whether clients are crawlers of search engines, as the operators
// document it: the name that DNS has for the address is in a domain of the operator, and that name
// has the address. An agent proves nothing, and neither does a name alone, which the owner of any
// address can choose.
package crawlers

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/event/address"
)

// A Verifier asks DNS about clients that were refused, and has the addresses that are crawlers. Its
// methods never wait for DNS. It is safe for concurrent use. Make one with [New].
type Verifier struct {
	resolver *net.Resolver
	enabled  atomic.Pointer[[]operator]
	changed  chan struct{} // enabled is another
	queue    chan netip.Addr

	mu    sync.Mutex
	known map[netip.Addr]answer // also those in the queue, without an end

	verified                   atomic.Int64
	crawlers, others, failures atomic.Uint64
	dropped                    atomic.Uint64
}

// An answer is the answer of DNS about an address. The zero answer is outstanding.
type answer struct {
	until  time.Time
	client Client // without an operator, it is no crawler
}

// A Client is the verified address of a crawler.
type Client struct {
	Addr     netip.Addr
	Operator string
	Host     string // its name
}

// Stats counts what a Verifier has done.
type Stats struct {
	Verified int64  // addresses that are crawlers now
	Crawlers uint64 // addresses that DNS says are crawlers, at each time it was asked
	Others   uint64 // those that are not
	Failures uint64 // questions that DNS did not answer in time
	Dropped  uint64 // clients about whom DNS was not asked, because too many others were waiting
}

const (
	maxQueued  = 256     // clients that wait for a question to DNS
	maxKnown   = 1 << 16 // clients whose answers are kept
	inParallel = 4       // questions to DNS at a time
	maxHosts   = 8       // names of one address that are looked up

	lookupTimeout = 5 * time.Second

	crawlerFor = 24 * time.Hour // an answer holds
	otherFor   = time.Hour      // that a client is no crawler
	failureFor = time.Minute    // if there was none
	sweepEvery = 30 * time.Second
)

// New returns a Verifier that verifies nobody before [Verifier.Use]. If resolver is nil, it asks
// the servers of the system.
func New(resolver *net.Resolver) *Verifier {
	if resolver == nil {
		resolver = &net.Resolver{PreferGo: true}
	}
	return &Verifier{resolver: resolver, changed: make(chan struct{}, 1), queue: make(chan netip.Addr, maxQueued), known: make(map[netip.Addr]answer)}
}

// Use makes v verify the crawlers of these operators, of [Operators]. Those of others are no longer
// verified.
func (v *Verifier) Use(names []string) {
	var enabled []operator
	for _, o := range operators {
		if slices.Contains(names, o.name) {
			enabled = append(enabled, o)
		}
	}
	v.enabled.Store(&enabled)
	select {
	case v.changed <- struct{}{}:
	default: // it was not yet seen that it changed before
	}
}

// Stats returns what v has done.
func (v *Verifier) Stats() Stats {
	return Stats{v.verified.Load(), v.crawlers.Load(), v.others.Load(), v.failures.Load(), v.dropped.Load()}
}

// Refused makes v ask DNS about a client that a rule has refused, unless the answer is known. If
// there is an agent, it must say that it is a crawler. It costs less than the refusal; if too many
// clients are waiting, v sends no query.
func (v *Verifier) Refused(client, agent []byte) {
	enabled := v.enabled.Load()
	if enabled == nil || len(*enabled) == 0 {
		return
	}
	if len(agent) > 0 && !slices.ContainsFunc(*enabled, func(o operator) bool { return o.claims(agent) }) {
		return
	}
	addr, ok := address.Parse(string(client))
	if !ok || !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return
	}
	if v.asks(addr) {
		select {
		case v.queue <- addr:
		default: // another was faster
			v.forget(addr)
		}
	}
}

// asks reports whether DNS must be asked about addr, and marks the question as outstanding.
func (v *Verifier) asks(addr netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.known[addr]; ok { // sweep removes those that are over
		return false
	}
	if len(v.queue) == cap(v.queue) || len(v.known) >= maxKnown && !v.evict() {
		v.dropped.Add(1)
		return false
	}
	v.known[addr] = answer{}
	return true
}

// evict deletes the answer about a client that is no crawler, if one is found soon.
//
// REQUIRES: v.mu.
func (v *Verifier) evict() bool {
	tried := 0
	for addr, a := range v.known {
		if !a.until.IsZero() && a.client.Operator == "" {
			delete(v.known, addr)
			return true
		}
		if tried++; tried == 16 {
			break
		}
	}
	return false
}

func (v *Verifier) forget(addr netip.Addr) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, addr)
	v.dropped.Add(1)
}

// Run asks DNS until ctx is done. It calls publish whenever the verified addresses change, with
// all of them, and with the added address, or nil.
func (v *Verifier) Run(ctx context.Context, publish func(all []netip.Prefix, added *Client)) {
	answers := make(chan answer)
	var running sync.WaitGroup
	defer running.Wait()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for asking := 0; ; {
		queue := v.queue
		if asking == inParallel {
			queue = nil
		}
		select {
		case <-ctx.Done():
			return
		case addr := <-queue:
			asking++
			running.Go(func() {
				a := v.ask(ctx, addr)
				select {
				case answers <- a:
				case <-ctx.Done():
				}
			})
		case a := <-answers:
			asking--
			if all, crawler := v.learn(a); crawler {
				publish(all, &a.client)
			}
		case <-v.changed:
			if all, changed := v.sweep(time.Now(), true); changed {
				publish(all, nil)
			}
		case now := <-sweep.C:
			if all, changed := v.sweep(now, false); changed {
				publish(all, nil)
			}
		}
	}
}

// learn keeps an answer. If it is about a crawler, it returns the addresses of all: others are too many to go through what
// is known for each, while refusals wait.
func (v *Verifier) learn(a answer) (all []netip.Prefix, crawler bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[a.client.Addr] = a
	if a.client.Operator == "" {
		return all, false
	}
	return v.all(), true
}

// sweep deletes answers that no longer hold. If other operators are enabled, these are all but
// those about crawlers of the enabled ones.
func (v *Verifier) sweep(now time.Time, others bool) (all []netip.Prefix, changed bool) {
	enabled := *v.enabled.Load()
	v.mu.Lock()
	defer v.mu.Unlock()
	for addr, a := range v.known {
		holds := slices.ContainsFunc(enabled, func(o operator) bool { return o.name == a.client.Operator })
		if a.until.IsZero() || now.Before(a.until) && (holds || !others && a.client.Operator == "") {
			continue
		}
		delete(v.known, addr)
		changed = changed || a.client.Operator != ""
	}
	return v.all(), changed
}

// all returns the addresses of all crawlers.
//
// REQUIRES: v.mu.
func (v *Verifier) all() []netip.Prefix {
	var all []netip.Prefix
	for addr, a := range v.known {
		if a.client.Operator != "" {
			all = append(all, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	v.verified.Store(int64(len(all)))
	return all
}

// ask asks DNS about an address.
func (v *Verifier) ask(ctx context.Context, addr netip.Addr) answer {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	client, err := v.verify(ctx, addr)
	switch {
	case client.Operator != "":
		v.crawlers.Add(1)
		return answer{time.Now().Add(crawlerFor), client}
	case err != nil:
		v.failures.Add(1)
		return answer{time.Now().Add(failureFor), client}
	}
	v.others.Add(1)
	return answer{time.Now().Add(otherFor), client}
}

// verify returns the crawler that has an address; one without an operator if there is none. With an
// error, this is not known.
func (v *Verifier) verify(ctx context.Context, addr netip.Addr) (Client, error) {
	c, enabled := Client{Addr: addr}, *v.enabled.Load()
	hosts, err := v.resolver.LookupAddr(ctx, addr.String())
	if err != nil && len(hosts) == 0 {
		return c, unlessNotFound(err)
	}
	var failed error
	for _, host := range hosts[:min(len(hosts), maxHosts)] {
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		i := slices.IndexFunc(enabled, func(o operator) bool { return o.has(host) })
		if i < 0 {
			continue
		}
		addrs, err := v.resolver.LookupNetIP(ctx, "ip", host+".")
		if err != nil {
			failed = unlessNotFound(err)
		}
		if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == addr }) {
			c.Operator, c.Host = enabled[i].name, host
			return c, nil
		}
	}
	return c, failed
}

// unlessNotFound returns err, or nil if DNS has answered that there is no such name.
func unlessNotFound(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return nil
	}
	return err
}
