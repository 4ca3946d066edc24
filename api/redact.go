package api

import (
	"encoding/json"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// redactCallback redacts secret headers in the payload of a callback: the job's, and those of the receiver's response.
// Payloads other than JSON objects are returned unchanged.
func redactCallback(payload []byte) []byte {
	if !json.Valid(payload) {
		return payload
	}
	if payload = request.SkipSpace(payload); payload[0] != '{' {
		return payload
	}
	o := new(response.Buffer)
	o.Open()
	for name, value := range request.Members(payload) {
		if value[0] == '{' {
			value = redactHeaders(value, job.SecretHeader)
		}
		o.Member(string(name), value)
	}
	o.Close()
	return o.Bytes()
}

// redactChange redacts the headers in a change of bulk work that may be secrets. The change is stored as it is shown.
func redactChange(change []byte) []byte {
	return redactHeaders(change, func(name string) bool { return !job.HarmlessHeader(name) })
}

// redactHeaders redacts the headers of a job or of an attempt whose names are secret.
func redactHeaders(object []byte, isSecret func(name string) bool) []byte {
	o := new(response.Buffer)
	o.Open()
	for name, value := range request.Members(object) {
		if string(name) != "headers" && string(name) != "response_headers" || value[0] != '{' {
			o.Member(string(name), value)
			continue
		}
		o.Object(string(name))
		for header, values := range request.Members(value) {
			if isSecret(string(header)) {
				values = []byte(`"` + response.Redacted + `"`)
			}
			o.Member(string(header), values)
		}
		o.Close()
	}
	o.Close()
	return o.Bytes()
}
