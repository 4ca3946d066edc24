package app

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestWatchImports_EndsWhenAnImportBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		key := store.DocumentKey{Kind: "import", Namespace: "default", Name: "x"}
		time.AfterFunc(time.Minute, func() {
			doc := store.Document{Key: key, Value: []byte(`{"sections":0,"started_at":"2026-01-02T03:04:05Z"}`)}
			_, err := s.PutDocument(t.Context(), store.NewToken(), doc, policy.Limits{})
			require.NoError(t, err)
		})
		began := time.Now()
		err := watchImports(t.Context(), namedStore{name: "main", storeName: storeName{file: "x.db"}}, s)
		require.ErrorContains(t, err,
			"open the store sqlite:x.db: an import that began at 2026-01-02T03:04:05Z is not complete")
		require.Less(t, time.Since(began), time.Minute+2*importsEvery)
	})
}
