package job

import "github.com/ringback/ringback/policy"

// Namespace is a namespace: its jobs, topics and lanes are apart from those of others with the same names.
type Namespace struct {
	// Name is ignored in a PUT.
	Name string `json:"-" api:"namespace,answer,always" validate:"omitempty,namespace"`
	// Revision grows with every change. 0: the namespace default, which was never put.
	Revision int64 `json:"-" api:"revision,answer,always"`
	// Store is the store with the namespace's jobs and settings: main, or one of --store NAME=URL. It never changes
	// after the creation. Default: main.
	Store string `json:"store,omitempty" api:"store,always" validate:"omitempty,namespace"`
	// Quota bounds what the namespace uses.
	Quota Quota `json:"quota,omitzero" api:"quota,always"`
}

// Quota bounds what a namespace may use. Zero values are no bounds.
type Quota struct {
	// Pending is the number of unfinished jobs. Null: any number.
	Pending int64 `json:"pending,omitempty" api:"pending" validate:"omitempty,min=1"`
	// Bytes is the size of the unfinished jobs: bodies, URLs, headers and labels. Null: any size.
	Bytes int64 `json:"bytes,omitempty" api:"bytes,size" validate:"omitempty,min=1"`
	// Rate is that of registrations in all processes together, such as 500/s. Null: any rate.
	Rate policy.Rate `json:"rate,omitzero" api:"rate"`
}
