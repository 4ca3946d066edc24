package response

import "github.com/ringback/ringback/store"

// TopicBuckets writes the history of a topic with its name.
func (o *Buffer) TopicBuckets(h *store.History) {
	o.Text("topic", h.Topic)
	o.Buckets(h)
}

// Buckets writes what became of attempts.
func (o *Buffer) Buckets(h *store.History) {
	Objects(o, "minutes", h.Minutes, o.historyBucket)
	Objects(o, "hours", h.Hours, o.historyBucket)
}

func (o *Buffer) historyBucket(b *store.HistoryBucket) {
	o.Members(b)
	p50, _ := b.LateQuantile(0.5)
	p99, _ := b.LateQuantile(0.99)
	o.millisOrNull("late_p50_ms", p50)
	o.millisOrNull("late_p99_ms", p99)
}
