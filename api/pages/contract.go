package pages

import (
	"encoding/json"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/api/response"
)

// A Contract is an OpenAPI document.
type Contract struct {
	text []byte
	json func() []byte
}

// NewContract returns a Contract for a document in YAML.
func NewContract(text []byte) *Contract {
	return &Contract{text: text, json: sync.OnceValue(func() []byte { return toJSON(text) })}
}

// YAML serves the document as it is.
func (c *Contract) YAML(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(c.text)
	return nil
}

// JSON serves the document as JSON.
func (c *Contract) JSON(w http.ResponseWriter, _ *http.Request) error {
	w.Header()["Content-Type"] = response.ContentTypeJSON
	_, _ = w.Write(c.json())
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
