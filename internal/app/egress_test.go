package app

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptions_EncodeWithoutSecrets(t *testing.T) {
	o := Options{SecretKey: "hunter2", Proxy: "http://me:hunter2@proxy.example:3128"}
	text, err := json.Marshal(o)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.Contains(t, string(text), "http://proxy.example:3128")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", o, o, o), "hunter2")

	text, err = json.Marshal(Options{Proxy: ProxyNone})
	require.NoError(t, err)
	require.Contains(t, string(text), `"none"`)
}
