// Command server compares the RESP and HTTP listeners with redis-server, with a net/http
// server that only answers, and with two limiters over a network, redis_rate and
// gubernator: each server in a process of its own, all in one run.
//
//	go run ./server -seconds 2 -passes 3
//	go run ./server -overload 60s
//	go run ./server -clients -seconds 2 -passes 5
//	go run ./server -redis-benchmark 200000 -passes 5
//	go run ./server -hot 1000 -connections 4 -keys 100000
//
// Client and server share the machine's cores, so ratios count, not figures.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	serve := flag.Bool("serve", false, "be the server that is measured, and print its addresses")
	serveHot := flag.Bool("serve-hot", false, "be a server with hot rules, and print its addresses")
	echo := flag.Bool("echo", false, "be a net/http server that only answers, and print its address")
	seconds := flag.Float64("seconds", 2, "how long each row of each pass takes")
	passes := flag.Int("passes", 3, "how often all rows are measured")
	conns := flag.Int("connections", 64, "how many connections ask")
	keys := flag.Int("keys", 10_000, "how many keys are asked for")
	alone := flag.Bool("alone", false, "measure the rows of lately and no others, for two commits in turns")
	five := flag.Duration("overload", 0, "ask with five times as many connections for so long, instead")
	standard := flag.Int("redis-benchmark", 0, "have redis-benchmark send so many requests in each pass, instead")
	clients := flag.Bool("clients", false, "have Go clients ask, each with as many callers as connections, instead")
	hot := flag.Int("hot", 0, "measure reports of hot keys, and so many watchers of them, instead")
	flag.Parse()
	var err error
	switch {
	case *serve:
		err = beServer(benchRules)
	case *serveHot:
		err = beServer(hotRules)
	case *echo:
		err = beEcho()
	case *clients:
		err = measureClients(load{time.Duration(*seconds * float64(time.Second)), *conns, *keys}, *passes)
	case *hot > 0:
		err = measureHot(load{time.Duration(*seconds * float64(time.Second)), *conns, *keys}, *hot, *passes)
	case *five > 0:
		err = overload(*five, *conns, *keys)
	case *standard > 0:
		err = measureStandard(*passes, *standard, *conns, *keys)
	default:
		err = measure(load{time.Duration(*seconds * float64(time.Second)), *conns, *keys}, *passes, *alone)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}
