package match_test

import (
	"fmt"

	"github.com/lately-go/lately/match"
)

func ExampleEvent() {
	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	e.SetString(match.Path, "/a/../%6Cogin")
	e.SetNamedString("tenant", "acme")

	fmt.Printf("%s %s %s\n", e.Get(match.Client), e.CleanPath(), e.GetNamed("tenant"))
	// Output: 192.0.2.1 /login acme
}

// One client has one key, in any notation of its address.
func ExampleKey() {
	key := match.MustKey("client", "method")
	var e match.Event
	e.SetString(match.Client, "2001:DB8:0:0:1::1")
	e.SetString(match.Method, "GET")
	k, ok := key.Append(nil, &e)
	for part := range key.Parts(k) {
		fmt.Printf("%s\n", part)
	}
	fmt.Println(ok)
	// Output:
	// 2001:db8::/64
	// GET
	// true
}

func ExampleWhen() {
	condition, err := match.When{Method: []string{"POST"}, Path: []string{"/login", "/api/**"}}.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	var e match.Event
	e.SetString(match.Method, "POST")
	for _, path := range []string{"/login", "/login/", "/api/v1/users", "//api/./v1"} {
		e.SetString(match.Path, path)
		fmt.Println(path, condition.Holds(&e))
	}
	// Output:
	// /login true
	// /login/ false
	// /api/v1/users true
	// //api/./v1 true
}

// Callers that have the values and no event join them.
func ExampleKey_Join() {
	key, err := match.NewKey(match.Fold{}, "client", "user")
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err := key.Join(nil, "2001:DB8:0:0:1::1", "ada")
	for part := range key.Parts(k) {
		fmt.Printf("%s\n", part)
	}
	fmt.Println(err)
	_, err = key.Join(nil, "192.0.2.1")
	fmt.Println(err)
	// Output:
	// 2001:db8::/64
	// ada
	// <nil>
	// number of key values: 1: must be 2: client, user
}

// The addresses of one customer are one key: IPv6 by /64 unless the Fold has another length.
func ExampleFold() {
	for _, fold := range []match.Fold{{}, {IPv4: 24, IPv6: 48}} {
		key, err := match.NewKey(fold, "client")
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, client := range []string{"::ffff:192.0.2.1", "2001:db8::1"} {
			k, err := key.Join(nil, client)
			fmt.Printf("%s %v\n", k, err)
		}
	}
	// Output:
	// 192.0.2.1 <nil>
	// 2001:db8::/64 <nil>
	// 192.0.2.0/24 <nil>
	// 2001:db8::/48 <nil>
}
