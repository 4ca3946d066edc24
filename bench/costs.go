package main

import "time"

// costOf returns the name of the measure of a process's processor time per job.
func costOf(process string) string { return "µs of " + process }

const (
	receiverCost = "receiver"
	ringbackCost = "Ringback"
	redisCost    = "Redis"
	clientCost   = "the client"
)

// costs adds the processor time that processes use per job during do to its reading.
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
