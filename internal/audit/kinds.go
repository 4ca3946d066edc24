package audit

import "github.com/ringback/ringback/store"

// advice is what a kind of fault means, and what to do.
type advice struct{ means, todo string }

// byRepair is what to do about faults that are repaired without a loss.
const byRepair = "run ringback verify --repair"

var advices = map[store.RepairKind]advice{
	store.RepairUnplaced: {
		"nothing finds the job: while it is unfinished it is never delivered, afterwards it is never listed or removed",
		byRepair + ": the job goes where its record says, and never becomes due again once it has ended",
	},
	store.RepairMisplaced: {
		"the job is in several places or a wrong one, so that it may run twice, late, or be counted wrong",
		byRepair + ": the job stays where its record says",
	},
	store.RepairNoJob: {
		"an entry points to nothing: the record was lost or removed; the entry takes a place and is counted",
		byRepair + ": it removes the entry; if the job must run, register it again or restore a backup",
	},
	store.RepairLease: {
		"the job counts as running for good, and takes a slot of its lane",
		byRepair + ": the lease gets an end, after which the job is due again, recorded as lost; with SQLite restart " +
			"the service",
	},
	store.RepairLifetime: {
		"the job does not end at its expiry while its lane is blocked",
		byRepair + ": it enters the job into the index",
	},
	store.RepairAgenda: {
		"no process looks after the queue in time: its jobs are late or wait for good",
		byRepair + ": it schedules the queue; if this comes back, see whether a process with the role worker runs",
	},
	store.RepairOrder: {
		"a job of an ordered lane is passed over, or is not claimed at all",
		byRepair + ": it has the order built anew",
	},
	store.RepairQueue: {
		"the queue is missing where others look for it: its jobs are not listed, counted or delivered",
		byRepair + ": it enters the queue again",
	},
	store.RepairOutbox: {
		"a callback or a tick's job is not relayed to its queue, or again and again",
		byRepair + ": it enters the entry again",
	},
	store.FaultRelay: {
		"a callback or a tick's job is not registered",
		"see whether a process with the role worker runs, and its log for \"outbox relay\": the shard of the entry's " +
			"queue may be unavailable",
	},
	store.RepairLeftover: {
		"it takes room, and nothing else",
		byRepair + ": it removes the rest",
	},
	store.RepairCounter: {
		"numbers of the API and the metrics, quotas and retention are wrong",
		byRepair + ": it counts anew",
	},
	store.FaultUnreadable: {
		"nothing can be done with it: a job is neither listed nor delivered",
		"keep a copy of the store; then purge the job, or replace the schedule, or restore a backup",
	},
	store.FaultBody: {
		"the job cannot be delivered as it was registered",
		"cancel or replace the job, or restore a backup",
	},
	store.FaultNameless: {
		"nothing knows the job's topic and lane, so that it is neither listed nor delivered",
		"restore a backup; a job that is registered again needs another id",
	},
	store.FaultSchedule: {
		"the schedule makes no tick",
		"start a process with the role worker: it restarts such schedules when it starts and every hour",
	},
}

// Advice returns what a kind of fault means, and what to do about it.
func Advice(kind store.RepairKind) (means, todo string) {
	a := advices[kind]
	return a.means, a.todo
}
