package access_test

import (
	"fmt"
	"log"
	"net/netip"
	"strings"

	"github.com/lately-go/lately/server/access"
)

// A service may ask for decisions, and may not ban.
func Example() {
	tokens, err := access.Parse(strings.NewReader("check correct-horse-battery-staple-0123456789 shop\n"), "tokens")
	if err != nil {
		log.Fatal(err)
	}
	guard, err := access.NewGuard(access.GuardConfig{})
	if err != nil {
		log.Fatal(err)
	}
	peer := netip.MustParseAddr("192.0.2.7")
	who, err := guard.Authenticate(tokens, "correct-horse-battery-staple-0123456789", peer)
	fmt.Println(who.Name, who.Role, err)
	fmt.Println("check:", who.Role.May(access.Check), "admin:", who.Role.May(access.Admin))
	for range 10 {
		_, err = guard.Authenticate(tokens, "guess", peer)
	}
	fmt.Println(err)
	// Output:
	// shop check <nil>
	// check: true admin: false
	// too many unknown tokens; try again in 60 s
}
