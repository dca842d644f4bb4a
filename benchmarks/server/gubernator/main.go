// Command gubernator is the peer of that name for the comparison in ../: one node in
// memory on loopback, and a caller with the client that it ships. It is a module of its
// own, since its dependencies are many and old; ../ builds and starts it.
//
//	gubernator                              serve, and print the address
//	gubernator -ask address -seconds 2 -items 100
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	addr := flag.String("ask", "", "address of a node to ask, instead of being one")
	seconds := flag.Float64("seconds", 2, "how long to ask")
	callers := flag.Int("callers", 64, "how many ask at once")
	conns := flag.Int("connections", 64, "how many connections they share")
	keys := flag.Int("keys", 10_000, "how many keys are asked for")
	items := flag.Int("items", 1, "how many decisions are asked for in one call")
	flag.Parse()
	err := beNode
	if *addr != "" {
		err = load{*addr, time.Duration(*seconds * float64(time.Second)), *callers, *conns, *keys, *items}.run
	}
	if err := err(); err != nil {
		fmt.Fprintln(os.Stderr, "gubernator:", err)
		os.Exit(1)
	}
}
