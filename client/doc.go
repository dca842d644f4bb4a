// Package client has two clients for lately servers. A [Fleet] is for decisions in the path
// of every request: it spreads keys over several servers, and its callers share one RESP
// connection to each. A [Client] uses the HTTP API of one server, also through HTTP proxies:
// it makes decisions, and administers bans, counters and rules.
//
//	f, err := client.NewFleet(client.FleetConfig{Nodes: []string{"10.0.0.1:7379", "10.0.0.2:7379"}})
//	...
//	defer f.Close()
//	d, err := f.Take(ctx, "login", 1, "192.0.2.1", "ada")
//	if err == nil && !d.Allowed {
//		// refused: try again after d.RetryAfter
//	}
//
// A Client has the same Take:
//
//	c, err := client.New("http://127.0.0.1:7380", client.Config{})
//	...
//	d, err := c.Take(ctx, "login", 1, "192.0.2.1", "ada")
//
// A cost that becomes known later is reserved and settled: see [Fleet.Reserve].
//
// A decision is the [ratelimit.Decision] that a limiter in the same process would return,
// with times rounded up to milliseconds. If the server refuses a request, the error is an
// [*Error] with its code and its reason. Any other error of a Client means that there was no
// answer: the event may or may not have been counted. A Fleet distinguishes more cases, see
// [ErrUnanswered].
//
// No request is repeated that could count twice. The stream of [Client.Events] and the
// connections of a Fleet are reopened when they are lost, after waits with full jitter
// (M. Brooker, "Exponential Backoff And Jitter", 2015).
//
// # Hot keys
//
// A Fleet with a [hotkey.Detector] detects hot keys over all processes: the counts
// of all Detectors are added up on the node of each key, and a key that is hot there
// is hot in all processes. Caches of the Detector are used as without a Fleet:
//
//	file, err := rules.Load("rules.yaml") // the file of the servers, or hotkey.Rule values
//	detector, err := hotkey.NewDetector(file.Hot, hotkey.DetectorConfig{})
//	fleet, err := client.NewFleet(client.FleetConfig{Nodes: nodes, Token: token, Detector: detector})
//	pages, err := hotkey.NewCache(detector, hotkey.CacheConfig[Page]{Rule: "product", Load: loadPage})
//	...
//	page, err := pages.Get(ctx, path) // from memory while path is hot anywhere
//	...
//	err = fleet.Changed(ctx, "product", path) // after the page was changed at its source
//
// [Fleet.HotChanges] yields each key that becomes hot in the fleet, or cold again.
//
// Detectors and nodes must have rules with the same names and keys. A key must have the
// form of the rule's Key: a clean path, a folded address. The token needs the role check.
//
// Timing: a process adds up events for 20 to 100 ms, longer if nodes are slow, and 5 ms if
// it has an eighth of the threshold. The node counts them at their time, with an error of at
// most that interval. It notifies all processes of hot keys about every 10 ms. Each process
// loads the value at its next use, and again at 80 to 95 % of the rule's TTL, at random.
//
// A report costs less than 100 ns, and no allocation. Events that are not reported yet take
// at most 4 MiB, and as much again while they are sent; beyond that, the keys with the
// fewest events are dropped. [Fleet.HotStats] counts these.
//
// If a node is lost, its keys stay hot until their hold is over. Meanwhile another node
// counts them from zero, so a key that is steadily at twice its threshold is hot again
// within a span. Without any node, each process detects alone, like a Detector without a
// Fleet. A restarted node has no hot keys at first; that ends no hold. After an interrupted
// connection to a node that was not restarted, keys that it no longer lists are no longer
// hot.
//
// # When not to use
//
// For other languages, use a Redis client on the server's RESP port.
package client
