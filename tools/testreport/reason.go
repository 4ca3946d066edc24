package main

import (
	"regexp"
	"strings"
)

// maxReason bounds the lines of a reason.
const maxReason = 6

var (
	// place is the beginning of what a test prints with t.Error, t.Fatal or t.Log.
	place = regexp.MustCompile(`^\s*(\S+_test\.go:\d+): ?(.*)`)
	// frame is a line of a stack in a file of this module's tests or code.
	frame = regexp.MustCompile(`^\s+\S*/([^/\s]+/[^/\s]+\.go:\d+)`)
)

// reasonOf returns why a test failed, from what it printed, in a few lines: a panic or a data race before a failed
// assertion of testify before the last line of another kind. It is empty for a test that printed nothing.
func reasonOf(lines []string) []string {
	for i, line := range lines {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
			return withTests(lines[i:])
		}
	}
	for i, line := range lines {
		if strings.Contains(line, "WARNING: DATA RACE") {
			return withFrames("data race", lines[i:])
		}
	}
	if reason := assertion(lines); len(reason) > 0 {
		return reason
	}
	return lastLines(lines)
}

// withTests returns a panic and, if it is the time limit of a package, the tests that ran.
func withTests(lines []string) []string {
	reason := []string{strings.TrimSpace(lines[0])}
	if strings.Contains(lines[0], "test timed out") {
		for _, line := range lines[1:] {
			if strings.HasPrefix(strings.TrimSpace(line), "Test") && len(reason) < maxReason {
				reason = append(reason, strings.TrimSpace(line))
			}
		}
		return reason
	}
	return append(reason, withFrames("", lines[1:])...)
}

// withFrames returns a word and the first places of a stack that are not of Go itself.
func withFrames(word string, lines []string) (reason []string) {
	if word != "" {
		reason = append(reason, word)
	}
	for _, line := range lines {
		m := frame.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, "/go/src/") || strings.Contains(line, "/pkg/mod/") {
			continue
		}
		if reason = append(reason, m[1]); len(reason) == maxReason {
			break
		}
	}
	return reason
}

// assertion returns the place and the texts of the first failed assertion of testify.
func assertion(lines []string) (reason []string) {
	at, in := "", false
	for _, line := range lines {
		if m := place.FindStringSubmatch(line); m != nil {
			if in {
				break
			}
			at = m[1]
			continue
		}
		title, text, titled := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case titled && (title == "Error" || title == "Messages"):
			in = true
			reason = append(reason, strings.TrimSpace(text))
		case titled && (title == "Test" || title == "Error Trace"): // the summary names both
		case in && len(reason) < maxReason-1 && strings.TrimSpace(line) != "" && strings.HasPrefix(line, "        \t"):
			reason = append(reason, strings.TrimSpace(line))
		}
	}
	if len(reason) > 0 {
		reason[0] = at + ": " + reason[0]
	}
	return reason[:min(len(reason), maxReason)]
}

// lastLines returns the end of what was printed, without the lines of the go command.
func lastLines(lines []string) (reason []string) {
	for _, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case text == "", text == "FAIL", text == "PASS", strings.HasPrefix(text, "==="), strings.HasPrefix(text, "---"),
			strings.HasPrefix(text, "FAIL\t"), strings.HasPrefix(text, "exit status"),
			strings.HasPrefix(text, "-test.shuffle"),
			strings.HasPrefix(text, `{"time"`):
		default:
			reason = append(reason, text)
		}
	}
	return reason[max(0, len(reason)-maxReason):]
}
