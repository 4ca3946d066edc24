package connect

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// reloadHook makes a cluster's client read the slot map again when a server cannot be reached. By itself it does so
// every ten seconds, and on redirects.
type reloadHook struct{ client *redis.ClusterClient }

func (r reloadHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r reloadHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.reloadAfter(ctx, err)
		return err
	}
}

func (r reloadHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.reloadAfter(ctx, err)
		return err
	}
}

// reloadAfter reloads after errors that are not a server's reply.
func (r reloadHook) reloadAfter(ctx context.Context, err error) {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, redis.ErrClosed) {
		return
	}
	if _, isReply := errors.AsType[redis.Error](err); !isReply || isClientSide(err) {
		r.client.ReloadState(ctx)
	}
}

// retryRedirects calls do with the server that serves a key, and again, up to three times, when a cluster redirects the
// call or the server is gone.
func (c *Client) retryRedirects(ctx context.Context, key string, do func(*redis.Client) error) error {
	for attempt := 0; ; attempt++ {
		server, err := c.Node(ctx, key)
		if err == nil {
			err = do(server)
		}
		if err == nil || attempt == maxRedirects || !isRedirect(err) || !c.reloadSlots(ctx) {
			return err
		}
	}
}

// isRedirect reports whether another server of a cluster, or the same one later, may reply differently.
func isRedirect(err error) bool {
	if _, isReply := errors.AsType[redis.Error](err); !isReply {
		return true
	}
	for _, code := range []string{"MOVED ", "ASK ", "TRYAGAIN ", "READONLY "} {
		if redis.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}

// reloadSlots starts a reload of a cluster's slot map and pauses. It returns false when ctx ended or there is no
// cluster.
func (c *Client) reloadSlots(ctx context.Context) bool {
	client, ok := c.UniversalClient.(*redis.ClusterClient)
	if !ok {
		return false
	}
	client.ReloadState(ctx)
	select {
	case <-time.After(reloadPause):
		return true
	case <-ctx.Done():
		return false
	}
}
