package enforce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"
)

// nftables has the kernel drop packets of banned networks. The table inet lately belongs to
// it: one set for each length of prefix, whose elements have times of their own. Sets of
// whole prefixes would have to be of intervals, which cannot overlap.
type nftables struct {
	nft string
	now func() time.Time

	sets map[nftSet]bool // that exist
}

// nftSet is the set of the networks of one length.
type nftSet struct {
	ipv6 bool
	bits int
}

func newNFTables(now func() time.Time) (*nftables, error) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		return nil, errors.New("nftables: no program nft in PATH: must be installed (package nftables)")
	}
	return &nftables{nft: nft, now: now}, nil
}

const (
	nftTable = "inet lately"

	// Before connection tracking and before the addresses of containers are put in.
	nftChain = nftTable + ` banned { type filter hook prerouting priority raw; policy accept; }`

	nftElements = 512 // on one line of a script

	// nftTimeout is how long one run of nft may take.
	nftTimeout = 20 * time.Second
)

// apply changes the sets in one transaction: all of it, or nothing.
func (n *nftables) apply(ctx context.Context, whole bool, changes []change) error {
	var script bytes.Buffer
	sets := n.sets
	if whole {
		sets = make(map[nftSet]bool)
		// Deleting what does not exist is an error; adding what exists is not.
		fmt.Fprintf(&script, "add table %s\ndelete table %[1]s\nadd table %[1]s\nadd chain %s\nadd rule %[1]s banned iif lo accept\n", nftTable, nftChain)
	}
	now := n.now()
	groups := make(map[nftSet][]change)
	for _, c := range changes {
		set := nftSet{c.network.Addr().Is6(), c.network.Bits()}
		groups[set] = append(groups[set], c)
	}
	for set, changes := range groups {
		if !sets[set] {
			set.declare(&script)
			sets[set] = true // after an error, all begins again
		}
		set.elements(&script, changes, now, whole)
	}
	if _, err := n.run(ctx, script.Bytes()); err != nil {
		return err
	}
	n.sets = sets
	return nil
}

// verify looks for the chain, the sets and the element of each set that is never banned. Its
// cost does not depend on the number of bans.
func (n *nftables) verify(ctx context.Context) error {
	var script bytes.Buffer
	fmt.Fprintf(&script, "list chain %s banned\n", nftTable)
	for set := range n.sets {
		fmt.Fprintf(&script, "get element %s %s { %s }\n", nftTable, set, set.mask())
	}
	out, err := n.run(ctx, script.Bytes())
	if err != nil {
		return err
	}
	chain, _, _ := strings.Cut(out, "}")
	if rules := strings.Count(chain, " drop"); rules < len(n.sets) {
		return fmt.Errorf("the chain has %d rules that drop: must be %d", rules, len(n.sets))
	}
	return nil
}

// run runs nft with a script on its standard input, and returns its output.
func (n *nftables) run(ctx context.Context, script []byte) (string, error) {
	out, err := execute(ctx, nftTimeout, script, n.nft, "-f", "-")
	if err != nil {
		return "", fmt.Errorf("nft: %w", err)
	}
	return out, nil
}

// String returns the name of the set.
func (s nftSet) String() string {
	if s.ipv6 {
		return fmt.Sprintf("ipv6_%d", s.bits)
	}
	return fmt.Sprintf("ipv4_%d", s.bits)
}

// mask returns the netmask of the set. It is also an element without a time, which shows
// that nobody has flushed the set: no packet comes from a broadcast or multicast address.
func (s nftSet) mask() netip.Addr {
	ones := "255.255.255.255"
	if s.ipv6 {
		ones = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	}
	return netip.PrefixFrom(netip.MustParseAddr(ones), s.bits).Masked().Addr()
}

// declare writes the set and the rule that looks it up.
func (s nftSet) declare(script *bytes.Buffer) {
	protocol, kind := "ip", "ipv4_addr"
	if s.ipv6 {
		protocol, kind = "ip6", "ipv6_addr"
	}
	fmt.Fprintf(script, "add set %s %s { type %s; flags timeout; }\n", nftTable, s, kind)
	fmt.Fprintf(script, "add rule %s banned %s saddr & %s @%s counter drop\n", nftTable, protocol, s.mask(), s)
	s.write(script, "add", []string{s.mask().String()})
}

// elements writes changes of the set. A kernel before 6.12 does not change the time of an
// element that is there, and no kernel deletes one that is not: each element is added,
// deleted and added with its time, in one transaction.
func (s nftSet) elements(script *bytes.Buffer, changes []change, now time.Time, whole bool) {
	for len(changes) > 0 {
		some := changes[:min(nftElements, len(changes))]
		changes = changes[len(some):]
		var all, held []string
		for _, c := range some {
			address := c.network.Addr().String()
			all = append(all, address)
			// Less than a millisecond would be no time at all, which is for ever.
			if left := c.ban.Until.Sub(now).Milliseconds(); !c.ended && left > 0 {
				held = append(held, fmt.Sprintf("%s timeout %dms", address, left))
			}
		}
		if !whole {
			s.write(script, "add", all)
			s.write(script, "delete", all)
		}
		s.write(script, "add", held)
	}
}

func (s nftSet) write(script *bytes.Buffer, verb string, elements []string) {
	if len(elements) > 0 {
		fmt.Fprintf(script, "%s element %s %s { %s }\n", verb, nftTable, s, strings.Join(elements, ", "))
	}
}
