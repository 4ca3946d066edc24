package multistore

import (
	"context"

	"github.com/ringback/ringback/dispatcher"
)

// Of is of, for the test of its allocations.
func (s *Service) Of(ctx context.Context, namespace string) (*dispatcher.Dispatcher, error) {
	return s.of(ctx, namespace)
}
