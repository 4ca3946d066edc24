package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/schedules"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// schedulePage is the number of documents that are read at once.
	schedulePage = 100
	// scheduleWait is the least time between two looks: a process that restarts a schedule writes a job and then its
	// document.
	scheduleWait = 2 * time.Second
)

// missingJobs looks once for schedules that have no unfinished internal job. Unreadable documents are reported, too.
func missingJobs(ctx context.Context, a store.Auditor) (result, error) {
	found := result{faults: map[key]store.Fault{}}
	note := func(doc *store.Document, kind store.RepairKind, id, detail string) {
		f := store.Fault{
			Kind: kind, Where: "schedule " + doc.Key.Namespace + "/" + doc.Key.Name, ID: id, Detail: detail,
			After: scheduleWait,
		}
		found.faults[keyOf(&f)] = f
	}
	for after := (store.DocumentKey{Kind: store.KindSchedule}); ; {
		docs, _, err := a.ListDocuments(ctx, after, schedulePage)
		if err != nil {
			return found, fmt.Errorf("list schedules: %w", err)
		}
		var refs []job.Ref
		var of []*store.Document
		for i := range docs {
			ref, err := schedules.InternalJob(&docs[i])
			if err != nil {
				note(&docs[i], store.FaultUnreadable, "", "its document cannot be decoded")
				continue
			}
			refs, of = append(refs, ref), append(of, &docs[i])
		}
		unfinished, err := a.Unfinished(ctx, refs)
		if err != nil {
			return found, fmt.Errorf("find the jobs of schedules: %w", err)
		}
		for i, ok := range unfinished {
			if !ok {
				note(of[i], store.FaultSchedule, refs[i].ID, "its internal job is gone, so that it makes no tick")
			}
		}
		if len(docs) < schedulePage {
			return found, nil
		}
		after = docs[len(docs)-1].Key
	}
}
