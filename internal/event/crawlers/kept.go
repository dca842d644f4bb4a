package crawlers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"
)

// A keptClient is a crawler in a record.
type keptClient struct {
	Addr     netip.Addr `json:"addr"`
	Operator string     `json:"operator"`
	Host     string     `json:"host"`
	Until    time.Time  `json:"until"`
}

// keptChunk is how many crawlers a record has at most.
const keptChunk = 1024

// ExportAt yields records of the crawlers whose answers hold at now, for [Verifier.ImportAt]. Their order does not change.
func (v *Verifier) ExportAt(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for chunk := range slices.Chunk(v.crawlersAt(now), keptChunk) {
			data, err := json.Marshal(chunk)
			if err != nil { // it has nothing that JSON cannot have
				panic("crawlers: " + err.Error())
			}
			if !yield(data) {
				return
			}
		}
	}
}

// crawlersAt returns the crawlers whose answers hold at now, by their addresses.
func (v *Verifier) crawlersAt(now time.Time) (all []keptClient) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for addr, a := range v.known {
		if a.client.Operator != "" && now.Before(a.until) {
			all = append(all, keptClient{addr, a.client.Operator, a.client.Host, a.until.UTC().Round(0)})
		}
	}
	slices.SortFunc(all, func(a, b keptClient) int { return a.Addr.Compare(b.Addr) })
	return all
}

// ImportAt adds the crawlers of a record whose answers hold at now, for a day at most, and returns the addresses of all. Those of
// operators that are not verified are left out.
func (v *Verifier) ImportAt(now time.Time, record []byte) (all []netip.Prefix, err error) {
	var kept []keptClient
	if err := json.Unmarshal(record, &kept); err != nil {
		return all, fmt.Errorf("record of crawlers: %w", err)
	}
	enabled := *cmp.Or(v.enabled.Load(), new([]operator))
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range kept {
		isEnabled := slices.ContainsFunc(enabled, func(o operator) bool { return o.name == c.Operator })
		if c.Addr.IsValid() && isEnabled && now.Before(c.Until) && len(v.known) < maxKnown {
			until := now.Add(min(c.Until.Sub(now), crawlerFor))
			v.known[c.Addr] = answer{until, Client{c.Addr, c.Operator, c.Host}}
		}
	}
	return v.all(), nil
}
