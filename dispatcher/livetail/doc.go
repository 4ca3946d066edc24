// Package livetail passes attempts and changes, as they happen, to the clients of all processes that watch them.
//
//	attempt, change ─▶ Publish ─▶ filters and limits of all listeners ─▶ Run ─▶ store.Tail ─▶ Listener.Next ─▶ client
//
// A listener announces its filter with every read of the store's tail. Publishers learn the announced filters from the
// answer to an append, and append only updates that a listener wants, at most Rate a second for each.
//
// # Cost
//
// While nobody listens, an update costs one atomic load. A process asks who listens with one call of the store, at most
// every two seconds, and only if updates happened. So a listener sees the updates of its own process from the start,
// and those of others from two seconds later at the latest. Publish never waits for the store. A listener reads four
// times a second.
//
// # Skipped updates
//
// Each message counts the updates that each listener wanted. What a listener did not get of them, because of the rate,
// of the size of a message, of a slow client or of a fault of the store, it reports as skipped.
package livetail
