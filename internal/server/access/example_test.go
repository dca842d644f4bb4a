package access_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/lately-go/lately/internal/server/access"
)

// A service may request decisions, and may not ban.
func Example() {
	tokens, err := access.Parse(strings.NewReader("check correct-horse-battery-staple-0123456789 shop\n"), "tokens")
	if err != nil {
		log.Fatal(err)
	}
	role, name, ok := tokens.Role("correct-horse-battery-staple-0123456789")
	fmt.Println(name, role, ok)
	fmt.Println("check:", role.May(access.Check), "admin:", role.May(access.Admin))
	_, _, ok = tokens.Role("guess")
	fmt.Println(ok)
	// Output:
	// shop check true
	// check: true admin: false
	// false
}
