package request_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/store"
)

func TestDecodeWork_ShowsANullThatRemovesHeaders(t *testing.T) {
	const change = `{"headers": null, "url": null}`
	f, p := request.DecodeWork([]byte(`{"action": "revive", "where": {"all": true}, "change": `+change+`}`),
		time.Time{})
	require.Nil(t, p)
	require.JSONEq(t, `{"headers": null}`, string(f.Change))
	f, p = request.DecodeDead([]byte(`{"all": true, "headers": null}`), store.WorkRevive)
	require.Nil(t, p)
	require.JSONEq(t, `{"headers": null}`, string(f.Change))
}
