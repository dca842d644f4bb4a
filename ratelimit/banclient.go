package ratelimit

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/lately-go/lately/match"
)

// checkBanClient returns an error if the client in a key of k is a network that no
// client is folded to: no event has it, so a ban of it would do nothing. values are as
// many as k has fields.
func checkBanClient(k match.Key, values []string) error {
	i := slices.Index(k.Fields(), match.Client.String())
	fold := k.Fold()
	if i < 0 || fold.Off {
		return nil
	}
	p, err := netip.ParsePrefix(values[i])
	if err != nil {
		return nil
	}
	folded := string(fold.Append(nil, []byte(p.Addr().String())))
	if folded == values[i] {
		return nil
	}
	return fmt.Errorf("client: %q: networks cannot be banned: must be an address; %s bans %s", values[i], p.Addr(), folded)
}
