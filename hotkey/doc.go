// Package hotkey says which keys are hot, at the very event that makes them so.
//
// A [Rule] makes a key hot at the T-th event in (t-span, t], its threshold and
// span; the key then stays hot for the rule's hold. A [Set] is rules compiled
// together, and a [Detector] counts events under a Set:
//
//	set, err := hotkey.NewSet(hotkey.Rule{
//		Name:      "product",
//		Key:       match.MustKey("path"),
//		Threshold: 500,
//		Span:      2 * time.Second,
//		Hold:      time.Minute,
//	})
//	...
//	detector, err := hotkey.NewDetector(set, hotkey.DetectorConfig{})
//	...
//	edges = detector.Add(event, edges[:0])
//	for _, edge := range edges {
//		// edge.Key just became hot, until edge.Until
//	}
//
// Detection is edge-triggered: the event that makes a key hot yields one
// [Edge], at whatever number of goroutines, and no other event does until the
// hold is over. Counting goes on while a key is hot, so that one that never
// cools is reported again by the first event after its hold.
//
// The detector is exact: it keeps the last T times of each key.
package hotkey
