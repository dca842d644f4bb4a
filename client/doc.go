// Package client has two clients of lately servers. A [Fleet] makes decisions in the path of
// every request: it spreads keys over several servers, and its callers share one RESP
// connection to each. A [Client] uses the HTTP API of one server: it has all of its
// requests, and passes HTTP proxies.
//
//	f, err := client.NewFleet(client.FleetConfig{Nodes: []string{"10.0.0.1:6380", "10.0.0.2:6380"}})
//	...
//	defer f.Close()
//	d, err := f.Take(ctx, "login", 1, "192.0.2.1", "ada")
//	if err == nil && !d.Allowed {
//		// refused: try again after d.RetryAfter
//	}
//
// A Client has a Take of the same form:
//
//	c, err := client.New("http://127.0.0.1:7380", client.Config{})
//	...
//	d, err := c.Take(ctx, "login", 1, "192.0.2.1", "ada")
//
// A cost that is known only afterwards is reserved and settled: see [Fleet.Reserve].
//
// A decision is the [ratelimit.Decision] that a limiter in the same process would return,
// with times rounded up to milliseconds. If the server refuses a request, the error is an
// [*Error] with its code and its reason. Any other error of a Client means that there was no
// answer: the event may or may not have been counted. A Fleet knows more, see
// [ErrUnanswered].
//
// No request is repeated that could count twice. The stream of [Client.Events] and the
// connections of a Fleet are made again when they are lost, after waits with full jitter
// (M. Brooker, "Exponential Backoff And Jitter", 2015).
//
// # Hot keys
//
// A Fleet that has a [hotkey.Detector] detects hot keys over all processes: what the
// Detectors count is added up on the node of each key, and a key that is hot there is hot in
// all of them. The caches of the Detector need not know:
//
//	file, err := rules.Load("rules.yaml") // the file of the servers, or hotkey.NewSet
//	detector, err := hotkey.NewDetector(file.Hot, hotkey.DetectorConfig{})
//	fleet, err := client.NewFleet(client.FleetConfig{Nodes: nodes, Token: token, Detector: detector})
//	pages, err := hotkey.NewCache(detector, hotkey.CacheConfig[Page]{Rule: "product", Load: loadPage})
//	...
//	page, err := pages.Get(ctx, path) // from memory while path is hot anywhere
//	...
//	err = fleet.Changed(ctx, "product", path) // after the page was changed at its source
//
// [Fleet.HotChanges] yields each key that becomes hot in the fleet, or is cold again.
//
// Detectors and nodes must have rules of the same names and keys. A key must have the form
// that the rule's Key makes: a clean path, a folded address. The token needs the role check.
//
// What happens when: events are added up for 20 to 100 ms, longer when nodes are slow; for 5
// ms if one process has an eighth of the threshold. The node counts them at their time, to
// within the time for which they were added up. When the key is hot, the node tells all
// processes, about every 10 ms. Each loads the value at its next use, and again at 80 to 95 %
// of the TTL of the rule, in no step with the others.
//
// A report costs less than 100 ns, and no allocation. What is not yet reported takes at most
// 4 MiB, and as much again while it is being sent; then the keys with the fewest events are
// dropped. [Fleet.HotStats] counts all that was not reported.
//
// If a node is lost, its keys stay hot until their hold is over. They are counted from zero
// by another node meanwhile, so a key that is steadily at twice its threshold is hot again
// within a span. Without any node, each process detects alone, as a Detector without a Fleet
// does. A node that starts again tells of no key at first: that ends no hold. Keys that it
// still knew before the connection was interrupted, and knows no more, are no longer hot.
//
// # When not to use
//
// For one server and another language, use a Redis client on the server's RESP port.
package client
