package main

import "time"

// costOf names the processor time that a job costs a process.
func costOf(process string) string { return "µs of " + process }

const (
	receiverCost = "receiver"
	ringbackCost = "Ringback"
	redisCost    = "Redis"
	clientCost   = "the client"
)

// costs adds to what do finds how much processor time processes used meanwhile, for each of so many jobs.
func costs(jobs int, processes map[string]*process, do func() (reading, error)) (reading, error) {
	before := make(map[string]time.Duration, len(processes))
	for name, p := range processes {
		used, err := p.cpu()
		if err != nil {
			return nil, err
		}
		before[name] = used
	}
	got, err := do()
	if err != nil {
		return nil, err
	}
	for name, p := range processes {
		used, err := p.cpu()
		if err != nil {
			return nil, err
		}
		got[costOf(name)] = float64((used - before[name]).Microseconds()) / float64(jobs)
	}
	return got, nil
}
