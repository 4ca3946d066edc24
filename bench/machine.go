package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A machine describes the machine and the date of a run.
type machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Memory   string `json:"memory"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Redis    string `json:"redis"`
	Postgres string `json:"postgres"`
	Ringback string `json:"ringback"`
	Date     string `json:"date"`
	Load     string `json:"load"` // of the minute before
}

func (b *bench) machine(ctx context.Context) machine {
	m := machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: memory(),
		Kernel: strings.TrimSpace(text("/proc/sys/kernel/osrelease")), Go: strings.TrimPrefix(runtime.Version(), "go"),
		Redis: "none", Postgres: "none", Date: time.Now().UTC().Format(time.DateOnly),
		Load:     "unknown",
		Ringback: output(ctx, "git", "describe", "--tags", "--always", "--dirty"),
	}
	if words := strings.Fields(text("/proc/loadavg")); len(words) > 0 {
		m.Load = words[0]
	}
	for word := range strings.FieldsSeq(output(ctx, "redis-server", "--version")) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			m.Redis = v
		}
	}
	if bin, err := postgresFolder(); err == nil {
		if words := strings.Fields(output(ctx, filepath.Join(bin, "postgres"), "--version")); len(words) > 2 {
			m.Postgres = words[2]
		}
	}
	return m
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, Linux %s, Go %s, Redis %s, PostgreSQL %s; Ringback %s; %s, load before %s",
		m.CPU, m.Cores, m.Memory, m.Kernel, m.Go, m.Redis, m.Postgres, m.Ringback, m.Date, m.Load)
}

// memory returns the machine's memory.
func memory() string {
	kb, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	if err != nil {
		return "unknown memory"
	}
	return fmt.Sprintf("%.0f GiB", kb/(1<<20))
}

// output returns the first line that a program prints, or "unknown".
func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || line == "" {
		return "unknown"
	}
	return line
}

// text returns a file's text, empty if it cannot be read.
func text(path string) string {
	all, _ := os.ReadFile(path)
	return string(all)
}

// field returns the value of the first "name: value" in a file of /proc.
func field(path, name string) string {
	for line := range strings.Lines(text(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// rss returns a process's resident memory in MB.
func (p *process) rss() (float64, error) {
	kb, err := strconv.ParseFloat(strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", p.pid()), "VmRSS"), " kB"),
		64)
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", p.name, err)
	}
	return kb * 1024 / 1e6, nil
}

// ticks per second are the unit of processor time in /proc, on every Linux.
const ticks = 100

// cpu returns the processor time that a process has used.
func (p *process) cpu() (time.Duration, error) {
	line := text(fmt.Sprintf("/proc/%d/stat", p.pid()))
	_, after, ok := strings.Cut(line, ") ") // the name before may contain spaces
	words := strings.Fields(after)
	if !ok || len(words) < 13 {
		return 0, fmt.Errorf("read the processor time of %s: %q", p.name, line)
	}
	var sum int
	for _, word := range words[11:13] { // utime, stime
		n, err := strconv.Atoi(word)
		if err != nil {
			return 0, fmt.Errorf("read the processor time of %s: %w", p.name, err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}
