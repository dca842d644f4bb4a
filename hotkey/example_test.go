package hotkey_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
)

// A path is hot for a minute after three requests in a second.
func ExampleDetector() {
	detector, err := hotkey.New(hotkey.Rule{
		Name: "product", Key: match.MustKey("path"), When: match.When{Path: []string{"/product/*"}},
		Threshold: 3, Span: time.Second, Hold: time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}

	var event match.Event
	event.SetString(match.Path, "/product/7")
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var edges []hotkey.Edge
	for i := range 6 {
		now := start.Add(time.Duration(i) * 200 * time.Millisecond)
		edges = detector.AddAt(now, &event, 1, edges[:0]) // Add(&event, ...) counts now
		for _, edge := range edges {
			fmt.Printf("event %d: %s is hot until %s\n", i+1, edge.Key, edge.Until.UTC().Format(time.TimeOnly))
		}
	}
	products, err := detector.Rule("product")
	if err != nil {
		log.Fatal(err)
	}
	for _, after := range []time.Duration{time.Minute, 2 * time.Minute} {
		count, hot := products.HotAt(start.Add(after), "/product/7")
		fmt.Println(hot, count.Hi)
	}
	// Output:
	// event 3: /product/7 is hot until 12:01:00
	// true 0
	// false 0
}

// Counts uses of keys without an event, with the current time.
func ExampleDetector_Rule() {
	detector, err := hotkey.New(hotkey.Rule{Name: "user", Key: match.MustKey("user"), Threshold: 2, Span: time.Minute, Hold: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	users, err := detector.Rule("user")
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		edge, hot, err := users.Add("ada")
		fmt.Println(edge.Key, hot, err)
	}
	count, hot := users.Hot("ada")
	fmt.Println(count.Lo, count.Hi, hot)
	// Output:
	//  false <nil>
	// ada true <nil>
	// 2 2 true
}

// Keeps the pages of hot products: the third use in a minute makes a key hot, and
// from the next load on the value is kept.
func ExampleCache() {
	detector, err := hotkey.New(hotkey.Rule{
		Name: "product", Key: match.MustKey("path"), Threshold: 3, Span: time.Minute,
		Cache: &hotkey.CachePolicy{TTL: 10 * time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	loads := 0
	pages, err := hotkey.NewCache(detector, hotkey.CacheConfig[string]{
		Rule: "product",
		Load: func(_ context.Context, key string) (string, error) { // queries the database
			loads++
			return "the page of " + key, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 100 {
		if _, err := pages.Get(context.Background(), "/product/7"); err != nil {
			log.Fatal(err)
		}
	}
	stats := pages.Stats()
	fmt.Println(loads, "loads,", stats.Hits, "hits,", stats.Misses, "misses")
	// Output:
	// 3 loads, 97 hits, 3 misses
}

// The keys with the most events in the last second, hot or not.
func ExampleRuleDetector_Top() {
	detector, err := hotkey.New(hotkey.Rule{Name: "product", Key: match.MustKey("path"), Threshold: 100, Span: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	products, err := detector.Rule("product")
	if err != nil {
		log.Fatal(err)
	}
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i, path := range []string{"/product/7", "/product/8", "/product/7", "/product/9", "/product/7", "/product/8"} {
		if _, _, err := products.AddAt(start.Add(time.Duration(i)*time.Millisecond), path, 1); err != nil {
			log.Fatal(err)
		}
	}
	top, err := products.TopAt(start.Add(10*time.Millisecond), 2, 0)
	for _, k := range top {
		fmt.Println(k.Key, k.Lo)
	}
	fmt.Println(err)
	// Output:
	// /product/7 3
	// /product/8 2
	// <nil>
}

// Keys that are known in advance are hot before their uses, or never.
func ExampleRuleDetector_SetHot() {
	detector, err := hotkey.New(hotkey.Rule{Name: "product", Key: match.MustKey("path"), Threshold: 100, Span: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	products, err := detector.Rule("product")
	if err != nil {
		log.Fatal(err)
	}
	if err := products.SetHot("/product/7", time.Now().Add(time.Hour)); err != nil { // it is on sale
		log.Fatal(err)
	}
	if err := products.SetNever("/health", true); err != nil {
		log.Fatal(err)
	}
	for _, path := range []string{"/product/7", "/product/8", "/health"} {
		_, hot := products.Hot(path)
		fmt.Println(path, hot)
	}
	// Output:
	// /product/7 true
	// /product/8 false
	// /health false
}

// A program that changes a value stores the new one, or has the next use load it.
func ExampleCache_Set() {
	detector, err := hotkey.New(hotkey.Rule{
		Name: "product", Key: match.MustKey("path"), Threshold: 1, Span: time.Minute,
		Cache: &hotkey.CachePolicy{TTL: 10 * time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	price := "10 EUR" // in the database
	prices, err := hotkey.NewCache(detector, hotkey.CacheConfig[string]{
		Rule: "product",
		Load: func(context.Context, string) (string, error) { return price, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(prices.Get(ctx, "/product/7"))
	price = "12 EUR"
	fmt.Println(prices.Set("/product/7", price)) // false would mean that it is not hot, so there is no old value
	fmt.Println(prices.Get(ctx, "/product/7"))
	price = "11 EUR"
	prices.Delete("/product/7")
	fmt.Println(prices.Get(ctx, "/product/7"))
	// Output:
	// 10 EUR <nil>
	// true
	// 12 EUR <nil>
	// 11 EUR <nil>
}
