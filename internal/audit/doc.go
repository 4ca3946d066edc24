// Package audit runs audits of stores and reports what they find.
//
// A fault is reported if two looks at the data have found it: what only a change beside the first look has made is
// none. A store audits itself in small steps (store.Auditor). What concerns documents as well as jobs, the internal
// jobs of schedules, is compared here.
package audit
