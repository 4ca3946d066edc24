package redistest

// Pause stops the server with its connections open and its port accepting, like a hanging machine, and waits until it
// is stopped.
func (s *Server) Pause() {
	s.tb.Helper()
	if !s.answering() {
		s.tb.Fatal("pause redis-server: it does not run, or is paused")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := halt(s.cmd.Process); err != nil {
		s.tb.Fatalf("pause redis-server: %v", err)
	}
	s.paused = true
}

// Resume continues a paused server.
func (s *Server) Resume() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || !s.paused {
		s.tb.Fatal("resume redis-server: it is not paused")
	}
	if err := wake(s.cmd.Process); err != nil {
		s.tb.Fatalf("resume redis-server: %v", err)
	}
	s.paused = false
}
