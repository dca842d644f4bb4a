// Package hotkey detects hot keys: the keys that are used most often at the
// moment, for example to cache them.
//
// A [Rule] makes a key hot at its T-th event in (t-span, t]; the key stays hot for
// the hold of the rule. A [Detector] counts events under a list of rules:
//
//	detector, err := hotkey.New(hotkey.Rule{
//		Name:      "product",
//		Key:       match.MustKey("path"),
//		Threshold: 500,
//		Span:      2 * time.Second,
//		Hold:      time.Minute,
//	})
//	...
//	edges = detector.Add(event, edges[:0])
//	for _, edge := range edges {
//		// edge.Key has just become hot, until edge.Until
//	}
//
// To count keys without an event, use [Detector.Rule]. To keep the values of hot
// keys in this process, use a [Cache]. To find keys that are hot over all processes of a
// fleet, give the Detector to a client.Fleet.
//
// Detection is edge-triggered: the event that makes a key hot returns one [Edge],
// with any number of goroutines, and no other event does until the hold is over.
// Counting continues while a key is hot, so a key that stays busy is reported again
// by the first event after its hold.
//
// Up to a threshold of 128 the detector is exact: it keeps the times of each key. Above,
// it counts in slots and decides on the lower bound, so that no key is hot too early,
// unless the rule is Exact. Every answer has the bounds of its count.
package hotkey
