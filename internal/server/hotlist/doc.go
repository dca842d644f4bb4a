// Package hotlist keeps the keys that are hot as a state with versions, and passes it to
// any number of watchers.
//
//	l := hotlist.New(hotlist.Config{Budget: 4 << 20, Now: time.Now})
//	go l.Run(stop)
//	l.Add(entry) // a key became hot: never waits for watchers
//
//	w := l.Watch("")
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
// [List.Add] takes a lock that is held for an append or a swap of a slice only. If so many
// keys become hot at once that they take an eighth of the budget, it also takes the lock
// of the list, as everything else does. That one is held to collect an update, never to
// encode or send it.
//
// # Memory
//
// Keys and what is kept of those that are no longer hot never need more than the budget,
// as estimated by [Entry]. When it is spent, the keys whose time is over first are
// removed early, and counted.
package hotlist
