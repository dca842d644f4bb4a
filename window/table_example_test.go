package window_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/window"
)

func ExampleTable() {
	requests, err := window.NewTable(window.TableConfig{Budget: 16 << 20},
		window.Last(time.Second), window.Last(time.Minute), window.Last(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	requests.Add("203.0.113.7", 1)
	requests.Add("203.0.113.7", 1)
	requests.Add("198.51.100.1", 1)

	minute, _ := requests.Count("203.0.113.7", time.Minute)
	fmt.Println(minute.Estimate, "in the last minute")
	top, _ := requests.Top(10, time.Hour)
	for _, k := range top {
		fmt.Println(k.Key, k.Lo)
	}
	// Output:
	// 2 in the last minute
	// 203.0.113.7 2
	// 198.51.100.1 1
}

// Reading a log: use the time of the line.
func ExampleTable_AddSumAt() {
	logins, err := window.NewTable(window.TableConfig{}, window.Window{Span: 10 * time.Minute, Slot: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 7 {
		sum, ok := logins.AddSumAt(at.Add(time.Duration(i)*time.Minute), "alice", 1)
		if ok && sum == 5 { // an add and its sum are one step: this is seen once
			fmt.Println("alice: the fifth login in ten minutes")
		}
	}
	// Output:
	// alice: the fifth login in ten minutes
}

func ExampleTable_All() {
	tb, err := window.NewTable(window.TableConfig{}, window.Window{Span: 3 * time.Second, Slot: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	at := time.Unix(1_000_000, 0)
	for i := range 3 {
		tb.AddAt(at.Add(time.Duration(i)*time.Second), "cart", uint64(i+1))
	}
	for key, reading := range tb.AllAt(at.Add(2 * time.Second)) {
		fmt.Print(key)
		for _, count := range reading.Slots(3 * time.Second) {
			fmt.Print(" ", count)
		}
		all, _ := reading.Count(3 * time.Second)
		fmt.Println(", in all", all.Lo)
	}
	// Output:
	// cart 1 2 3, in all 6
}

// All counts of one key, at one moment.
func ExampleReading() {
	requests, err := window.NewTable(window.TableConfig{}, window.Last(time.Minute), window.Last(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for minute := range 30 {
		requests.AddAt(at.Add(time.Duration(minute)*time.Minute), "203.0.113.7", 2)
	}

	r := requests.ReadAt(at.Add(29*time.Minute), "203.0.113.7")
	for _, span := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
		c, err := r.Count(span)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(span, c.Lo, c.Hi)
	}
	// Output:
	// 1m0s 2 4
	// 10m0s 20 22
	// 1h0m0s 60 60
}

// Is the budget large enough? Not if keys were evicted or refused.
func ExampleTable_Stats() {
	requests, err := window.NewTable(window.TableConfig{Budget: 1 << 20}, window.Last(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	for i := range 1000 {
		requests.Add(fmt.Sprint("client ", i), 1)
	}
	s := requests.Stats()
	fmt.Println(s.Keys, "keys,", s.Evicted+s.Refused, "too many,", s.Bytes <= s.Budget)
	// Output: 1000 keys, 0 too many, true
}
