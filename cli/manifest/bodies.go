package manifest

import (
	"context"
	"errors"
	"slices"
)

// ErrNoBodies is the error of Dump and NewPlan if a schedule has a body that the token may not read.
var ErrNoBodies = errors.New("this token may not read bodies, and schedules have some: use a token that may " +
	"(ringback token create --bodies)")

// checkBodies returns ErrNoBodies if some of these documents are schedules with bodies, which answers have placeholders
// of.
func checkBodies(ctx context.Context, call Server, documents []map[string]any) error {
	if !slices.ContainsFunc(documents, hasBody) {
		return nil
	}
	who, err := call.get(ctx, "/v1/whoami")
	if err == nil && who["bodies"] == false {
		err = ErrNoBodies
	}
	return err
}

// hasBody reports whether a document is a schedule whose jobs have a body.
func hasBody(schedule map[string]any) bool {
	job, _ := schedule["job"].(map[string]any)
	return job["body"] != nil || job["body_text"] != nil || job["body_base64"] != nil
}
