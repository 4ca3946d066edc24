// Package quotas refuses registrations that exceed a quota of their namespace: its unfinished jobs, their bytes, or its
// rate.
//
// A process counts what a namespace uses about once a second while it registers, and adds its own registrations in
// between.
package quotas
