package redistest

// Pause makes the server stand still, with its connections open and its port accepting, and waits until it does: as a
// machine that hangs.
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

// Resume lets a paused server run on.
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
