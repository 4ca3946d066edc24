package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Register registers many jobs and answers with a result for each, in order. A stream is handled by stream.
func (h *batchHandler) Register(w http.ResponseWriter, r *http.Request) error {
	if len(r.Header[request.IdempotencyKey]) > 0 {
		return response.Invalid(job.FieldError{
			Field:  request.IdempotencyKey,
			Detail: "is for a single job: set the id of each job of the batch instead",
		})
	}
	if request.IsNDJSON(r) {
		return h.stream(w, r)
	}
	if request.CheckContentType(r) != nil {
		return response.NewProblem(response.UnsupportedMediaType,
			"send JSON or NDJSON, and the header Content-Type: application/json or application/x-ndjson")
	}
	text, err := request.ReadJSON(w, r, request.MaxBatchBytes)
	if err != nil {
		return err
	}
	jobs, n, p := request.DecodeBatch(text)
	if p != nil {
		return p
	}
	w.Header()["Content-Type"] = response.ContentTypeJSON
	o := response.NewBuffer()
	defer o.Free()
	o.Open()
	o.Array("results")
	b := registration{batchHandler: h, out: o, now: time.Now(), written: func() { o.Flush(w) }}
	part := make([]item, 0, min(n, store.MaxBatch))
	for _, raw := range request.Elements(jobs) {
		if part = append(part, item{text: raw}); len(part) == store.MaxBatch {
			b.register(r.Context(), part)
			part = part[:0]
		}
	}
	b.register(r.Context(), part)
	o.CloseArray()
	o.Close()
	o.End(w)
	return nil
}
