package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/dispatcher/livetail"
)

const (
	// keepAlive is the longest time without a line, so that proxies and clients know that the server is there.
	keepAlive = 15 * time.Second
	// liveWriteTimeout bounds the wait for a client to read updates.
	liveWriteTimeout = 10 * time.Second
	// liveReconnect is when clients connect again, in milliseconds.
	liveReconnect = 2000
)

// watchUpdates answers with attempts and changes as they happen, until the client disconnects or does not read, its
// token is not valid any more, the store is unavailable, or the process stops. Only the client's connection may delay
// it.
func (a onStore) watchUpdates(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	filter := q.LiveFilter()
	if err := q.Err(); err != nil {
		return err
	}
	if filter.Topics = request.PrincipalOf(r.Context()).Topics; filter.Topic != "" {
		if err := checkTopic(r.Context(), filter.Topic); err != nil {
			return err
		}
	}
	if r.Method == http.MethodHead {
		writeLiveHeader(w)
		return nil // it has no listener
	}
	listener, err := a.listen(r.Context(), filter)
	if err != nil {
		return err
	}
	defer listener.Close()
	ended := make(chan struct{})
	stop := a.onShutdown(func() { close(ended) })
	defer stop()

	s := liveStream{
		api: a.api, w: w, rc: http.NewResponseController(w), request: r, listener: listener,
		out: response.NewBuffer(),
	}
	defer s.out.Free()
	writeLiveHeader(w)
	s.out.Reconnect(liveReconnect)
	s.run(ended)
	return nil
}

func writeLiveHeader(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", response.ServerSentEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect updates
	h.Set("Connection", "close")     // the stream's deadlines must not reach another request
	w.WriteHeader(http.StatusOK)
}

// listen starts listening.
func (a onStore) listen(ctx context.Context, filter livetail.Filter) (*livetail.Listener, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Timeout, response.ErrTimeout)
	defer cancel()
	return a.store.Listen(ctx, filter)
}

// liveStream is an answer with updates.
type liveStream struct {
	*api

	w        http.ResponseWriter
	rc       *http.ResponseController
	request  *http.Request
	listener *livetail.Listener
	out      *response.Buffer
}

// run sends updates until the stream ends.
func (s *liveStream) run(ended <-chan struct{}) {
	next := time.NewTicker(livetail.ReadEvery)
	defer next.Stop()
	for written := time.Now(); ; {
		if len(s.out.Bytes()) > 0 {
			if s.send() != nil {
				return // the client is gone, or does not read
			}
			written = time.Now()
		}
		select {
		case <-next.C:
		case <-ended:
			s.end(response.NewProblem(response.ShuttingDown, "the server is shutting down: connect again"))
			return
		case <-s.request.Context().Done():
			return
		}
		if err := s.read(); err != nil {
			p := response.FromError(err)
			if p.Cause != nil {
				s.log.Error("stream of updates ended", "err", err)
			}
			s.end(p)
			return
		}
		if len(s.out.Bytes()) == 0 && time.Since(written) >= keepAlive {
			s.out.Comment("keep-alive")
		}
	}
}

// read reads the next updates, if the token is still valid.
func (s *liveStream) read() error {
	ctx, cancel := context.WithTimeoutCause(s.request.Context(), limits.Timeout, response.ErrTimeout)
	defer cancel()
	if _, err := s.callers.Principal(ctx, s.request); err != nil {
		return err
	}
	updates, skipped, err := s.listener.Next(ctx)
	for i := range updates {
		s.out.LiveUpdate(&updates[i])
	}
	if skipped > 0 {
		s.out.SkippedUpdates(skipped)
	}
	return err
}

// end sends the reason why the stream ends.
func (s *liveStream) end(p *response.Problem) {
	s.out.ProblemUpdate(p)
	_ = s.send()
}

// send sends the buffer.
func (s *liveStream) send() error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
	_, err := s.w.Write(s.out.Bytes())
	s.out.Reset()
	if err == nil {
		err = s.rc.Flush()
	}
	return err
}
