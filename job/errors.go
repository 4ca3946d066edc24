package job

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// FieldError is one invalid field of a request: the field as a JSON pointer ("/url", "/ladder/2") and the violated
// rule.
type FieldError struct {
	Field  string
	Detail string
}

// InvalidError holds all invalid fields of a registration or an edit.
type InvalidError struct {
	Errors []FieldError
}

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Errors))
	for i, f := range e.Errors {
		parts[i] = f.Field + ": " + f.Detail
	}
	return strings.Join(parts, "; ")
}

// UndeclaredTopicError rejects a job of a topic without a stored policy where topics must be declared.
type UndeclaredTopicError struct {
	Topic string
}

func (e *UndeclaredTopicError) Error() string {
	return "topic " + e.Topic + " is not declared: create it first"
}

// TakenError rejects a registration whose id belongs to a job of a different request, or to a cancelled job.
type TakenError struct {
	ID string
	// Cancelled: the job was cancelled, and the request is the same as far as it can be compared.
	Cancelled bool
	// Differs are the fields that differ from the stored job; none when only its id is remembered.
	Differs []FieldError
}

func (e *TakenError) Error() string {
	if e.Cancelled {
		return "the job " + e.ID + " was cancelled: revive it to send it after all, or choose another id"
	}
	return "the id " + e.ID + " belongs to a different request: a repeated request must be identical in every field"
}

// QuotaError rejects a job or settings because their namespace has reached a quota.
type QuotaError struct {
	// Quota is the name of the quota, and Limit its text.
	Quota, Limit string
	// Used is the text of what is used, if it is not the limit.
	Used string
	// Remedy says what to do; empty: to retry later is enough.
	Remedy string
	// RetryAfter is when to try again; zero: once the remedy was taken.
	RetryAfter time.Duration
}

func (e *QuotaError) Error() string {
	used := ""
	if e.Used != "" {
		used = "; " + e.Used + " used"
	}
	return "the namespace has reached its quota " + e.Quota + " (" + e.Limit + used + "): " +
		cmp.Or(e.Remedy, "retry later")
}

// LimitError rejects a new token or namespace because there are as many as there may be.
type LimitError struct {
	What  string // in the plural
	Limit int
	// Remedy says what to do.
	Remedy string
}

func (e *LimitError) Error() string {
	return "there are " + strconv.Itoa(e.Limit) + " " + e.What + ", and no more are possible: " + e.Remedy
}

// NamespaceStoreError rejects a change of a namespace's store.
type NamespaceStoreError struct{ Namespace, Store string }

func (e *NamespaceStoreError) Error() string {
	detail := "the namespace " + e.Namespace + " is on the store " + e.Store + " and cannot move"
	if e.Namespace == DefaultNamespace {
		return detail + ": use another namespace"
	}
	return detail + ": delete the namespace, and create it on the other store 10 seconds later"
}

// NamespaceInUseError rejects the removal of a namespace.
type NamespaceInUseError struct {
	By     string
	Purged bool // what could be removed was
}

func (e *NamespaceInUseError) Error() string { return "the namespace has " + e.By }
