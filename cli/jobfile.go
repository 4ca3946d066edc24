package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/cli/request"
	"github.com/ringback/ringback/client"
)

// Bounds of the lines of a file that are registered together.
const (
	batchJobs  = 500
	batchBytes = 4 << 20 // unless one line has more; the server takes 16 MiB
)

// fileJob is a line of a file.
type fileJob struct {
	line int
	text string
}

// fileBatch are jobs that are registered together.
type fileBatch struct {
	jobs  []fileJob
	bytes int
}

// tally counts what became of the lines of a file.
type tally struct {
	registered, before, refused int
	done                        int // the last line of which, and of all before it, the result is known
}

// registerFile registers the jobs of a file in batches, and prints the results of those that were refused.
func (s *session) registerFile(ctx context.Context, name string, newIDs bool) error {
	in, err := s.input(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	var seed []byte
	if file, is := in.(*os.File); is {
		if seed, err = examine(name, file); err != nil {
			return err
		}
	}
	if newIDs {
		seed = nil
	}
	var t tally
	var batch fileBatch
	if err = s.registerLines(ctx, linesOf(name, in), seed, &batch, &t); err != nil {
		if !errors.Is(err, errPrinted) {
			s.sayProgress(t, len(batch.jobs), seed != nil)
		}
		return err
	}
	if t.before > 0 {
		s.say("%d registered, %d of them before; %d refused", t.registered, t.before, t.refused)
	} else {
		s.say("%d registered, %d refused", t.registered, t.refused)
	}
	if t.refused > 0 {
		return &codeError{code: ExitFailed}
	}
	return nil
}

// sayProgress prints what became of the lines of a file that is not registered to its end.
func (s *session) sayProgress(t tally, open int, stable bool) {
	done := "no line is done"
	if t.done > 0 {
		done = fmt.Sprintf("lines 1 to %d are done: %d registered, %d refused", t.done, t.registered, t.refused)
	}
	rest := "none is registered"
	if open > 0 {
		rest = fmt.Sprintf("up to %d may be registered", open)
	}
	s.say("%s; of the lines from %d on, %s", done, t.done+1, rest)
	if stable {
		s.say("repeat the command to go on: nothing is registered twice as long as the file is the same")
		return
	}
	s.say("go on from line %d: of lines without an id, ringback job list shows whether they are registered", t.done+1)
}

// registerLines registers lines in batches. If it fails, batch has those whose results are not known.
func (s *session) registerLines(ctx context.Context, lines iter.Seq2[int, lineResult], seed []byte, batch *fileBatch, t *tally) error {
	flush := func() error {
		if len(batch.jobs) == 0 {
			return nil
		}
		if err := s.registerBatch(ctx, batch.jobs, t); err != nil {
			return err
		}
		t.done = batch.jobs[len(batch.jobs)-1].line
		*batch = fileBatch{}
		return nil
	}
	for line, l := range lines {
		if l.err != nil {
			if err := flush(); err != nil {
				return err
			}
			return l.err
		}
		if l.job["id"] == nil {
			l.job.Set("id", idOf(seed, line))
		}
		text := string(l.job.Encode())
		if len(batch.jobs) == batchJobs || batch.bytes+len(text) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
			t.done = line - 1 // with empty lines
		}
		batch.jobs, batch.bytes = append(batch.jobs, fileJob{line, text}), batch.bytes+len(text)
	}
	return flush()
}

// idOf returns the id of a line without one: the same one for the same content of the file, or without a seed a new one.
func idOf(seed []byte, line int) string {
	if seed == nil {
		return client.NewID()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %d", seed, line))
	return hex.EncodeToString(sum[:16])
}

// lineResult is a line of a file that is not empty, or the error that ends it.
type lineResult struct {
	job request.Fields
	err error
}

// linesOf returns the lines of a file by number.
func linesOf(name string, in io.Reader) iter.Seq2[int, lineResult] {
	return func(yield func(int, lineResult) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxInput)
		line := 0
		for lines.Scan() {
			line++
			text := bytes.TrimSpace(lines.Bytes())
			if len(text) == 0 {
				continue
			}
			var job request.Fields
			if err := json.Unmarshal(text, &job); err != nil || job == nil {
				yield(line, lineResult{err: usage("%s: line %d is not a JSON object: %s", name, line, text[:min(len(text), 40)])})
				return
			}
			if !yield(line, lineResult{job: job}) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(line+1, lineResult{err: fmt.Errorf("read %s: line %d: %w", name, line+1, err)})
		}
	}
}

// examine reads a regular file, so that one with an invalid line is refused as a whole, and returns the hash of its content. Of other
// files, which can be read once, it returns nil.
func examine(name string, file *os.File) ([]byte, error) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	content := sha256.New()
	for _, l := range linesOf(name, io.TeeReader(file, content)) {
		if l.err != nil {
			return nil, l.err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s again: %w", name, err)
	}
	return content.Sum(nil), nil
}

// input opens a file; - is the standard input.
func (s *session) input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, &UsageError{err}
	}
	return file, nil
}

// registerBatch registers jobs, and prints the results of those that were refused. Those that the server could not take yet are sent
// again.
func (s *session) registerBatch(ctx context.Context, jobs []fileJob, t *tally) error {
	for try, wait := 1, 250*time.Millisecond; len(jobs) > 0; try, wait = try+1, 2*wait {
		texts := make([]string, len(jobs))
		for i, j := range jobs {
			texts[i] = j.text
		}
		r := &request.Request{Method: http.MethodPost, Path: "/v1/batch", Body: request.Fields{"jobs": json.RawMessage("[" + strings.Join(texts, ",\n") + "]")}}
		answer, err := s.register(ctx, r)
		if err != nil {
			return err
		}
		var results struct {
			Results []struct {
				ID     string          `json:"id"`
				Status int             `json:"status"`
				Error  *client.Problem `json:"error"`
			} `json:"results"`
		}
		if err := json.Unmarshal(answer, &results); err != nil {
			return fmt.Errorf("the answer is not that of a batch: %w", err)
		}
		if len(results.Results) != len(jobs) {
			return fmt.Errorf("the answer has %d results for %d jobs: is there a proxy in front of Ringback?", len(results.Results), len(jobs))
		}
		var later []fileJob
		for i, result := range results.Results {
			switch p := result.Error; {
			case p == nil:
				t.registered++
				if result.Status == http.StatusOK && try == 1 {
					t.before++
				}
			case try < registrations && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable):
				later = append(later, jobs[i])
				wait = max(wait, min(p.RetryAfter(), longestPause))
			default:
				t.refused++
				s.sayRefused(jobs[i].line, result.ID, p)
			}
		}
		if jobs = later; len(jobs) > 0 {
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

// sayRefused prints why a line of a file was refused.
func (s *session) sayRefused(line int, id string, p *client.Problem) {
	texts := []string{problemText(p)}
	for _, field := range p.Errors {
		texts = append(texts, field.Field+" "+field.Detail)
	}
	s.say("line %d, %s: %s", line, output.Printable(id), output.Printable(strings.Join(texts, "; ")))
}
