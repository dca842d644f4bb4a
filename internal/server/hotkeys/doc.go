// Package hotkeys counts the keys of hot rules, keeps those that are hot as a state with versions, and passes it to
// any number of watchers.
//
//	k := hotkeys.New(hotkeys.Config{Budget: 4 << 20, Now: time.Now})
//	...
//	go k.Run(stop)
//	rules, err := k.Prepare(file.Hot)
//	...
//	k.Use(rules)
//	edges = k.Count(t, event, edges) // never waits for watchers
//
//	w, err := k.Watch("")
//	...
//	defer w.Close()
//	for {
//		wake := w.Wait()
//		for update := w.Next(); update != nil; update = w.Next() {
//			// send each part of update
//		}
//		<-wake
//	}
//
// # State, not events
//
// A watcher has no queue. It has a version, and is sent what changed from this version to
// the present one: each key once, however often it changed. So a watcher that reads
// slowly costs no memory, and what it misses is merged. The list keeps its keys in the
// order of their last change, with those that are no longer hot for some time, so the
// changes since a version are the end of this order. A watcher that is too far behind
// for that, or that has just begun, receives the whole state. The same update is encoded
// once for all watchers that need it.
//
// # Locks
//
// A key that becomes hot takes a lock that is held for an append or a swap of a slice only. If so many
// keys become hot at once that they take an eighth of the budget of the list, it also takes the lock
// of the list, as everything else does. That one is held to collect an update, never to
// encode or send it.
//
// # Memory
//
// A sixteenth of the budget is for the list, the rest for the detectors of the rules, in equal shares; rules that do not
// change keep theirs. Keys in the list and what is kept of those that are no longer hot never need more than the budget,
// as estimated. When it is spent, the keys whose time is over first are
// removed early, and counted.
package hotkeys
