package job

import "github.com/ringback/ringback/policy"

// Namespace is a namespace: its jobs, topics and lanes are apart from those of others with the same names.
type Namespace struct {
	// Name is the name of the namespace. A PUT ignores it.
	Name string `json:"-" api:"namespace,answer,always" validate:"omitempty,namespace"`
	// Revision grows with every change. 0: the namespace `default`, which was never put.
	Revision int64 `json:"-" api:"revision,answer,always"`
	// Store is the store with the namespace's jobs and settings: `main`, or one of `--store NAME=URL`. It never changes
	// after the creation. Default: `main`, or the one that it has.
	Store string `json:"store,omitempty" api:"store,always" validate:"omitempty,namespace"`
	// Quota bounds what the namespace uses.
	Quota Quota `json:"quota,omitzero" api:"quota,always"`
	// Usage is what the namespace uses of what its quota bounds, also without one. Null in lists, in the answer to a
	// PUT, while its store is unavailable, and if it could not be counted in time.
	Usage *NamespaceUsage `json:"-" api:"usage,answer"`
}

// NamespaceUsage is what a namespace uses of what its Quota bounds.
type NamespaceUsage struct {
	// Pending is the number of unfinished jobs.
	Pending int64 `api:"pending,answer,always"`
	// Bytes is the size of the unfinished jobs, in bytes.
	Bytes int64 `api:"bytes,answer,always"`
	// KeptBytes is the size of the ended jobs that are kept, in bytes.
	KeptBytes int64 `api:"kept_bytes,answer,always"`
	// Settings is the number of topics with a policy, lanes with settings, and schedules.
	Settings int64 `api:"settings,answer,always"`
	// SettingsBytes is the size of these settings as they are stored, in bytes.
	SettingsBytes int64 `api:"settings_bytes,answer,always"`
}

// Quota bounds what a namespace may use. Zero values are no bounds.
type Quota struct {
	// Pending is the number of unfinished jobs. Null: any number.
	Pending int64 `json:"pending,omitempty" api:"pending" validate:"omitempty,min=1"`
	// Bytes is the size of the unfinished jobs: bodies, URLs, headers and labels. Null: any size.
	Bytes int64 `json:"bytes,omitempty" api:"bytes,size" validate:"omitempty,min=1"`
	// KeptBytes is the size of the ended jobs that are kept, from which on no job is registered. Null: any size.
	KeptBytes int64 `json:"kept_bytes,omitempty" api:"kept_bytes,size" validate:"omitempty,min=1"`
	// Settings is the number of topics with a policy, lanes with settings, and schedules. Null: any number.
	Settings int64 `json:"settings,omitempty" api:"settings" validate:"omitempty,min=1"`
	// SettingsBytes is the size of these settings as they are stored. Null: any size.
	SettingsBytes int64 `json:"settings_bytes,omitempty" api:"settings_bytes,size" validate:"omitempty,min=1"`
	// Rate is the rate of registrations, all processes together, such as `500/s`. Null: any rate.
	Rate policy.Rate `json:"rate,omitzero" api:"rate"`
}
