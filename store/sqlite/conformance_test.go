package sqlite

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// manual is a clock that a test moves.
type manual struct {
	mu sync.Mutex
	at time.Time
}

func (m *manual) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

func (m *manual) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = m.at.Add(d)
}

// verified is a store that counts everything it knows before it closes.
type verified struct {
	*Store
	t *testing.T
}

func (v verified) Close() error {
	if !v.t.Failed() {
		verify(v.t, v.Store)
	}
	return v.Store.Close()
}

// underTest opens a store on a file of the test's own.
func underTest(t *testing.T, now func() time.Time) storetest.Engine {
	o := options(t)
	o.Now = now
	var s store.Store
	open := func() store.Store {
		opened, err := Open(t.Context(), o)
		require.NoError(t, err)
		s = verified{opened, t}
		return s
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return storetest.Engine{
		Store: open(), Now: now, Defaults: o.Defaults,
		Reopen: func() store.Store {
			require.NoError(t, s.Close())
			return open()
		},
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		c := &manual{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
		e := underTest(t, c.now)
		e.Advance = c.advance
		return e
	})
}
