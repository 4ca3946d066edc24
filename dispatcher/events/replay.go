package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// ReplayLanes returns the lanes to which a replay sends an event: of the next lanes after one that subscribe now, those
// that the replay's filter selects. Errors: store.ErrNotFound, and *store.StateError if lanes are still to get their
// first job.
func (s *Service) ReplayLanes(
	ctx context.Context, event job.Ref, want *store.Filter, after string,
) (store.ReplayPart, error) {
	p, err := s.read(ctx, event)
	if err != nil {
		return store.ReplayPart{}, err
	}
	lanes, err := s.lanes(ctx, event.Namespace, &p.EventSpec)
	if err != nil {
		return store.ReplayPart{}, err
	}
	part := store.ReplayPart{Topic: p.Job.Topic, Bytes: len(p.Job.Body)}
	lanes = slices.DeleteFunc(lanes, func(l string) bool { return l <= after || want.Lane != "" && l != want.Lane })
	if len(lanes) > store.MaxEventLanes {
		lanes = lanes[:store.MaxEventLanes]
		part.Last = lanes[len(lanes)-1]
	}
	if part.Lanes = lanes; len(want.States) > 0 {
		part.Lanes, err = s.inStates(ctx, event.Namespace, p, lanes, want.States)
	}
	return part, err
}

// inStates returns the lanes whose job of an event is in one of some states.
func (s *Service) inStates(
	ctx context.Context, namespace string, p *progress, lanes []string, states []job.State,
) ([]string, error) {
	refs := make([]job.Ref, len(lanes))
	for i, lane := range lanes {
		refs[i] = job.Ref{Namespace: namespace, ID: job.EventJobID(p.ID, p.Job.Topic, lane)}
	}
	statuses, err := s.Jobs.StatusOnAny(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("read the states of an event's jobs: %w", err)
	}
	selected := lanes[:0]
	for i, lane := range lanes {
		state := statuses[i].Ended
		_, had := slices.BinarySearch(p.Made, lane)
		if had = had || p.Count > int64(len(p.Made)); !had && !statuses[i].Known() { // of so many not all are named
			state = store.Missed
		}
		if slices.Contains(states, state) {
			selected = append(selected, lane)
		}
	}
	return selected, nil
}

// ReplayJobs completes and prepares jobs of a replay, whose Lane, CreatedBy and RunAt are set: at least one, and no
// more than have room bytes of bodies. It returns an error or nil for each of the first of them. replay is the id of
// the bulk work.
func (s *Service) ReplayJobs(
	ctx context.Context, event job.Ref, replay string, jobs []job.New, room int,
) (made []store.NewJob, errs []error) {
	p, err := s.read(ctx, event)
	if err != nil {
		return nil, slices.Repeat([]error{err}, len(jobs))
	}
	jobs = jobs[:min(len(jobs), max(1, room/max(1, len(p.Job.Body))))]
	now := time.Now()
	faults, good := make([]error, len(jobs)), make([]job.New, 0, len(jobs))
	for i := range jobs {
		n := &jobs[i]
		since := now
		if n.RunAt.After(now) {
			since = n.RunAt
		}
		p.complete(n, event.Namespace, since)
		n.ID = job.ReplayJobID(p.ID, p.Job.Topic, n.Lane, replay)
		if expired := job.ValidateExpiry(n, now); len(expired) > 0 {
			faults[i] = &job.InvalidError{Errors: expired}
		} else {
			good = append(good, *n)
		}
	}
	made, prepared := s.prepareAll(ctx, good)
	for _, fault := range faults {
		if fault == nil && len(prepared) == 0 {
			break
		}
		if fault == nil {
			fault, prepared = prepared[0], prepared[1:]
		}
		errs = append(errs, fault)
	}
	return made, errs
}

// read reads an event whose lanes have got their jobs.
func (s *Service) read(ctx context.Context, event job.Ref) (*progress, error) {
	found, err := s.find(ctx, event.Namespace, event.ID)
	if err != nil {
		return nil, err
	}
	if !found.State.Ended() {
		return nil, &store.StateError{State: found.State}
	}
	p := new(progress)
	if err := json.Unmarshal(found.Body, p); err != nil {
		return nil, &job.InvalidError{Errors: []job.FieldError{{
			Field: "/body", Detail: "cannot be read by this version: " + err.Error(),
		}}}
	}
	return p, nil
}
