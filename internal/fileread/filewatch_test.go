package fileread

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

func TestWatcher_LoadsFilesThatChange(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(name+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(name+".new", name))
	}
	write(cert, "1")
	write(key, "1")
	var wrongMode atomic.Bool
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		w, loads := NewWatcher(slog.New(slog.NewTextHandler(&log, nil))), 0
		w.Add(func() error {
			loads++
			one, err := os.ReadFile(cert)
			if two, _ := os.ReadFile(key); err == nil && !bytes.Equal(one, two) {
				err = errors.New("key of another certificate")
			}
			if wrongMode.Load() {
				err = errors.New("can be changed by others")
			}
			return err
		}, cert, key)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx)
		// lines returns the levels of the lines of the next minute.
		lines := func() (levels string) {
			log.Reset()
			time.Sleep(time.Minute)
			synctest.Wait()
			for line := range strings.Lines(log.String()) {
				_, rest, _ := strings.Cut(line, "level=")
				level, _, _ := strings.Cut(rest, " ")
				levels += level + " "
			}
			return levels
		}
		require.Empty(t, lines())
		require.Equal(t, 1, loads, "it may have changed before")
		require.Empty(t, lines())
		require.Equal(t, 1, loads)

		write(key, "2")
		require.Equal(t, "WARN ", lines(), "once")
		require.Contains(t, log.String(), "key of another certificate")
		require.Contains(t, log.String(), cert+", "+key)
		write(cert, "2")
		require.Equal(t, "INFO ", lines())
		require.NoError(t, os.Remove(cert))
		require.Equal(t, "WARN ", lines())
		write(cert, "2")
		require.Equal(t, "INFO ", lines())

		wrongMode.Store(true)
		write(cert, "3")
		write(key, "3")
		require.Equal(t, "WARN ", lines())
		wrongMode.Store(false)
		require.Equal(t, "INFO ", lines(), "the same content, once it can be used")
		before := loads
		require.Empty(t, lines())
		require.Equal(t, before, loads)

		for _, text := range []string{"a half", "3", "a half", "3"} { // one at each look
			write(key, text)
			time.Sleep(WatchInterval)
			synctest.Wait()
		}
		require.Empty(t, lines())
		require.Equal(t, before, loads, "nothing is loaded that one look has found")
	})
}

// A writer that does not replace the file truncates it between the look and the load, and then writes the old content.
func TestWatcher_LoadsAgainWhatChangedWhileItWasLoaded(t *testing.T) {
	for name, loadErr := range map[string]error{"valid half": nil, "invalid half": errors.New("too short")} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
			write("whole")
			var log testkit.Log
			w, inForce, torn := NewWatcher(slog.New(slog.NewTextHandler(&log, nil))), "", true
			w.Add(func() error {
				if torn {
					write("who")
				}
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				inForce = string(text)
				if torn {
					return loadErr
				}
				return nil
			}, file)
			w.Look()
			w.Look()
			require.Equal(t, "who", inForce)
			require.Empty(t, log.String(), "nothing is said of a half")

			torn = false
			write("whole")
			w.Look()
			require.Equal(t, "who", inForce, "one look has found it")
			w.Look()
			require.Equal(t, "whole", inForce)
		})
	}
}

// A pipe or a device has nothing to read a second time, and reading it may block.
func TestWatcher_ReadsOnlyRegularFiles(t *testing.T) {
	w := NewWatcher(slog.New(slog.DiscardHandler))
	w.Add(func() error { panic("loaded") }, os.DevNull)
	for range 3 {
		w.Look()
	}
}
