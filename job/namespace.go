package job

import "github.com/ringback/ringback/policy"

// Namespace is a namespace: its jobs, topics and lanes are apart from those of others with the same names.
type Namespace struct {
	Name string `json:"-" api:"namespace,answer"`
	// Revision is that of the stored namespace; 0: none is stored.
	Revision int64 `json:"-" api:"revision,answer,always"`
	// Store is the name of the store with the namespace's jobs and settings. It never changes.
	Store string `json:"store,omitempty" api:"store" validate:"omitempty,namespace"`
	Quota Quota  `json:"quota,omitzero" api:"quota,always"`
}

// Quota bounds what a namespace may use. Zero values are no bounds.
type Quota struct {
	// Pending bounds the unfinished jobs.
	Pending int64 `json:"pending,omitempty" api:"pending" validate:"omitempty,min=1"`
	// Bytes bounds the size of the unfinished jobs, as in store.Usage.
	Bytes int64 `json:"bytes,omitempty" api:"bytes,size" validate:"omitempty,min=1"`
	// Rate bounds the registrations of all processes together.
	Rate policy.Rate `json:"rate,omitzero" api:"rate"`
}
