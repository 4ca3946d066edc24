package api

import (
	"encoding/json"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/api/response"
)

// An openAPIPage is an openAPIPage document.
type openAPIPage struct {
	text []byte
	json func() []byte
}

// newOpenAPIPage returns an openAPIPage for a document in YAML.
func newOpenAPIPage(text []byte) *openAPIPage {
	return &openAPIPage{text: text, json: sync.OnceValue(func() []byte { return toJSON(text) })}
}

// YAML serves the document as it is.
func (o *openAPIPage) YAML(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(o.text)
	return nil
}

// JSON serves the document as JSON.
func (o *openAPIPage) JSON(w http.ResponseWriter, _ *http.Request) error {
	w.Header()["Content-Type"] = response.ContentTypeJSON
	_, _ = w.Write(o.json())
	return nil
}

// toJSON returns a valid document as JSON.
func toJSON(text []byte) []byte {
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		panic("pages: the contract is valid YAML: " + err.Error())
	}
	asJSON, err := json.Marshal(document)
	if err != nil {
		panic("pages: the contract has a JSON form: " + err.Error())
	}
	return asJSON
}
