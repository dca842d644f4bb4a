package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/rules"
)

// startNode starts a server with these rules, and returns its address.
func startNode(text string) (addr string, stop func()) {
	file, err := rules.Parse("rules.yaml", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.New(engine.Config{Rules: file})
	if err != nil {
		log.Fatal(err)
	}
	s := respapi.New(listen.Config{Engine: e})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return l.Addr().String(), func() {
		cancel()
		<-ended
		e.Close()
	}
}

// Two servers count the logins of all users, each about half of the users.
func ExampleFleet_Take() {
	const text = "version: 1\nlimits:\n  - {name: login, key: user, limit: 2 per 10m}\n"
	first, stopFirst := startNode(text)
	defer stopFirst()
	second, stopSecond := startNode(text)
	defer stopSecond()

	f, err := client.NewFleet(client.FleetConfig{
		Nodes:   []string{first, second},
		Timeout: time.Minute, // in production a second, the default: the machine of a test may be busy
	})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		d, err := f.Take(context.Background(), "login", 1, "ada")
		switch {
		case errors.Is(err, client.ErrUnanswered):
			fmt.Println("it may have been counted") // let ada in, or not: do not send it again
		case err != nil:
			fmt.Println("it was not counted:", err)
		default:
			fmt.Println(d.Allowed, d.Remaining)
		}
	}
	// Output:
	// true 1
	// true 0
	// false 0
}

// Two processes use a product page. Neither finds it hot alone: the server does, and then
// both keep the page in memory.
func Example_hotKeys() {
	const text = `version: 1
hot:
  - {name: product, key: path, threshold: 6 per 60s, hold: 10m, cache: {ttl: 1m}}
`
	addr, stop := startNode(text)
	defer stop()
	file, err := rules.Parse("rules.yaml", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	loads := 0
	var pages []*hotkey.Cache[string]
	for range 2 {
		detector, err := hotkey.NewDetector(file.Hot, hotkey.DetectorConfig{})
		if err != nil {
			log.Fatal(err)
		}
		fleet, err := client.NewFleet(client.FleetConfig{
			Nodes: []string{addr}, Detector: detector,
			Timeout: time.Minute, // in production a second, the default: the machine of a test may be busy
		})
		if err != nil {
			log.Fatal(err)
		}
		defer fleet.Close()
		cache, err := hotkey.NewCache(detector, hotkey.CacheConfig[string]{
			Rule: "product",
			Load: func(_ context.Context, key string) (string, error) { // asks the database
				loads++
				return "the page of " + key, nil
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		pages = append(pages, cache)
	}
	for range 3 { // uses in each of the two
		for _, cache := range pages {
			if _, err := cache.Get(context.Background(), "/product/7"); err != nil {
				log.Fatal(err)
			}
		}
	}
	fmt.Println(loads, "loads before the page is hot")
	for _, cache := range pages {
		for hot := false; !hot; time.Sleep(time.Millisecond) {
			_, _, hot = cache.Peek("/product/7")
		}
	}
	for range 100 {
		for _, cache := range pages {
			if _, err := cache.Get(context.Background(), "/product/7"); err != nil {
				log.Fatal(err)
			}
		}
	}
	fmt.Println(loads, "loads after 200 more uses")
	// Output:
	// 6 loads before the page is hot
	// 8 loads after 200 more uses
}

// The price of a product is changed in the database: no process shows the old one any longer.
func ExampleFleet_Changed() {
	const text = "version: 1\nhot: [{name: product, key: path, threshold: 1 per 60s, hold: 10m, cache: {ttl: 1m}}]\n"
	addr, stop := startNode(text)
	defer stop()
	file, err := rules.Parse("rules.yaml", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	detector, err := hotkey.NewDetector(file.Hot, hotkey.DetectorConfig{})
	if err != nil {
		log.Fatal(err)
	}
	fleet, err := client.NewFleet(client.FleetConfig{
		Nodes: []string{addr}, Detector: detector,
		Timeout: time.Minute, // in production a second, the default: the machine of a test may be busy
	})
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	price := "10 EUR"
	prices, err := hotkey.NewCache(detector, hotkey.CacheConfig[string]{
		Rule: "product",
		Load: func(context.Context, string) (string, error) { return price, nil }, // asks the database
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(prices.Get(ctx, "/product/7"))
	price = "12 EUR"
	fmt.Println(prices.Get(ctx, "/product/7"))
	if err := fleet.Changed(ctx, "product", "/product/7"); err != nil {
		log.Fatal(err) // call it again
	}
	fmt.Println(prices.Get(ctx, "/product/7"))
	// Output:
	// 10 EUR <nil>
	// 10 EUR <nil>
	// 12 EUR <nil>
}

// A program decides with servers that have no rules: each call brings its limit.
func ExampleFleet_Throttle() {
	addr, stop := startNode("version: 1\n")
	defer stop()
	fleet, err := client.NewFleet(client.FleetConfig{Nodes: []string{addr}, Timeout: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	for range 3 { // 30 an hour, and one more at once
		d, err := fleet.Throttle(context.Background(), "ada", 1, 30, time.Hour, 1)
		fmt.Println(d.Allowed, d.RetryAfter.Round(time.Minute), err)
	}
	// Output:
	// true 0s <nil>
	// true 0s <nil>
	// false 2m0s <nil>
}

// No server can be reached: nothing was counted, and the program decides alone.
func ExampleFleet_Nodes() {
	fleet, err := client.NewFleet(client.FleetConfig{Nodes: []string{"unix:/nowhere/lately.sock"}})
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	_, err = fleet.Take(context.Background(), "login", 1, "ada")
	if !errors.Is(err, client.ErrNoNode) {
		log.Fatal(err)
	}
	for _, n := range fleet.Nodes() {
		fmt.Println(n.Addr, n.Up, n.Err != nil) // Err is the reason
	}
	// Output: unix:/nowhere/lately.sock false true
}

func ExampleFleet_HotChanges() {
	detector, err := hotkey.New(hotkey.Rule{Name: "product", Threshold: 500, Span: 2 * time.Second, Hold: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := client.NewFleet(client.FleetConfig{Nodes: []string{"127.0.0.1:7379"}, Detector: detector})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for change := range fleet.HotChanges(ctx) {
		if change.Hot {
			fmt.Println(change.Key, "became hot")
		} else {
			fmt.Println(change.Key, "is cold again")
		}
	}
}
