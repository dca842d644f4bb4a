package ratelimit

import (
	"fmt"
	"net/netip"

	"github.com/lately-go/lately/match"
)

// checkBanClient returns an error if the client in a key of k is a network that no
// client is folded to: no event has it, so a ban of it would do nothing. values are as
// many as k has fields.
func checkBanClient(k match.Key, values []string) error {
	i := k.ClientField()
	fold := k.Fold()
	if i < 0 || fold.Off {
		return nil
	}
	client := string(k.ClientOf(i, []byte(values[i])))
	p, err := netip.ParsePrefix(client)
	if err != nil {
		return nil
	}
	folded := string(fold.Append(nil, []byte(p.Addr().String())))
	if folded == client {
		return nil
	}
	return fmt.Errorf("client: %q: networks cannot be banned: must be an address; %s bans %s", client, p.Addr(), folded)
}
