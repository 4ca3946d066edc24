package job

import (
	"errors"
	"fmt"
	"net/textproto"
	"strconv"
	"time"
)

// HeaderAt returns the header of a request that is sent at a time, with names as SentHeader returns them: the topic's
// and the job's fields, and Ringback's, with the signature of that time. The error is one line.
func (r *Request) HeaderAt(now time.Time) (map[string][]string, error) {
	h := make(map[string][]string, len(r.Header)+10)
	for name, values := range r.Header {
		if !IsFieldName(name) {
			return nil, errors.New("a header's name is not one that HTTP can carry")
		}
		for _, v := range values {
			if !IsFieldValue(v) {
				return nil, fmt.Errorf("the header %s has a value that HTTP cannot carry", name)
			}
		}
		if len(values) > 0 && !ReservedHeader(name) { // validation may have let it pass
			h[SentHeader(name)] = values
		}
	}
	// One array for all our values.
	own := [7]string{
		r.Ref.ID,
		r.Queue.Topic,
		strconv.Itoa(r.Attempt),
		strconv.Itoa(r.RetriesLeft),
		strconv.FormatInt(r.DueAt.UnixMilli(), 10),
		r.ContentType,
	}
	if !IsFieldValue(own[0]) || !IsFieldValue(own[1]) || !IsFieldValue(own[5]) {
		return nil, errors.New("the id, topic or content type is not one that a header can carry")
	}
	values := own[:]
	h["Webhook-Id"] = values[0:1:1]
	h["Ringback-Topic"] = values[1:2:2]
	h["Ringback-Attempt"] = values[2:3:3]
	h["Ringback-Retries-Left"] = values[3:4:4]
	h["Ringback-Due-At"] = values[4:5:5]
	if at, ok := ScheduledAt(r.Ref.ID, r.Queue); ok {
		h["Ringback-Scheduled-At"] = []string{strconv.FormatInt(at.UnixMilli(), 10)}
	}
	if event := EventOf(r.Ref.ID, r.Queue); event != "" {
		h["Ringback-Event"], h["Ringback-Event-Id"] = []string{r.Labels[LabelEvent]}, []string{event}
	}
	if r.ContentType != "" {
		h["Content-Type"] = values[5:6:6]
	}
	r.Stamp(h, values[6:7:7], now)
	if signature := h["Webhook-Signature"]; signature != nil && !IsFieldValue(signature[0]) {
		return nil, errors.New("the signature is not one that a header can carry")
	}
	return h, nil
}

// Stamp sets the fields with the time of sending, whose value it puts in at, and the signature of that time and the
// body.
func (r *Request) Stamp(h map[string][]string, at []string, now time.Time) {
	at[0] = strconv.FormatInt(now.Unix(), 10)
	h["Webhook-Timestamp"] = at
	if r.Signer != nil {
		h["Webhook-Signature"] = []string{r.Signer.Sign(r.Ref.ID, now, r.Body)}
	}
}

// SentHeader returns the name, in the case in which HTTP/1.1 sends it, of a header with a name in any case: the
// canonical form, with exceptions.
func SentHeader(name string) string {
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch name {
	case "Idempotency-Key": // equal for receivers, but net/http replays a request with the canonical form
		return "idempotency-key"
	case "X-Idempotency-Key":
		return "x-idempotency-key"
	case "Soapaction": // SOAP 1.1 spells it so, and some of its servers compare the case
		return "SOAPAction"
	}
	return name
}
