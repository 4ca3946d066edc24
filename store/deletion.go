package store

import "fmt"

// TopicDeletion is a request to delete a topic.
type TopicDeletion struct {
	Namespace, Name string
	IfRevision      int64 // as in CheckCondition
	// Purge cancels the unfinished jobs and purges the dead letters before. Actor is the name of the client that
	// cancels them.
	Purge bool
	Actor string
}

// NamespaceDeletion is a request to delete a namespace.
type NamespaceDeletion struct {
	Name       string
	IfRevision int64 // as in CheckCondition
	// Purge removes its schedules, jobs, topics and lanes before. Actor is the name of the client that cancels jobs.
	Purge bool
	Actor string
}

// TopicDeleted counts the jobs that a TopicDeletion ended and removed. They are set with an error, too.
type TopicDeleted struct {
	Cancelled int64
	Purged    int64
}

// TopicInUseError is the error of the deletion of a topic that has unfinished jobs, or from which not everything was
// removed in time.
type TopicInUseError struct {
	Unfinished int64 // jobs; 0: something else is left
	Running    int64 // jobs of these
}

func (e *TopicInUseError) Error() string {
	if e.Unfinished == 0 {
		return "the topic was not removed in time"
	}
	return fmt.Sprintf("the topic has %d unfinished jobs, of which %d are running", e.Unfinished, e.Running)
}
