package packaging

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// commands returns the blocks of a page's section that are commands.
func commands(t *testing.T, page, heading string) (blocks []string) {
	t.Helper()
	_, section, found := strings.Cut(page, "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range submatches(`(?m)^((?:    .*\n)+)`, section) {
		if compiled(`^    (curl|ringback|export) `).MatchString(block) {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// Who follows the README word for word, with nothing but an archive, sees a callback arrive, fail, climb the ladder and
// recover. Only the ports are others.
func TestReadme_IsFollowedInTheFolderOfAnArchive(t *testing.T) {
	dist, dir := packPackages(t), t.TempDir()
	archive := filepath.Join(dist, "ringback-v1.2.3-linux-"+runtime.GOARCH+".tar.gz")
	output(t, "tar", "-xzf", archive, "-C", dir, "--strip-components=1")
	steps := commands(t, read(t, filepath.Join(dir, "README.md")), "60 seconds")
	require.Greater(t, len(steps), 4)
	require.Contains(t, steps[0], "\n    ringback dev\n")

	bash := func(script string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		cmd.Dir, cmd.Env = dir, []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "RINGBACK_ADDR=127.0.0.1:0", "RINGBACK_INBOX=127.0.0.1:0",
			"RINGBACK_OUTPUT=table",
		}
		return cmd
	}
	dev := bash(strings.Replace(steps[0], "    ringback dev", "    exec ringback dev", 1)) // so that it is stopped
	lines, err := dev.StdoutPipe()
	require.NoError(t, err)
	dev.Stderr = dev.Stdout
	require.NoError(t, dev.Start())
	defer func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		_ = dev.Wait()
	}()
	address := regexp.MustCompile(`^(api  |inbox) at http://([\d.:]+)`)
	ports, log, sampled := make(map[string]string), bufio.NewScanner(lines), false
	for !sampled && log.Scan() {
		if m := address.FindStringSubmatch(log.Text()); m != nil {
			ports[strings.TrimSpace(m[1])] = m[2]
		}
		sampled = strings.Contains(log.Text(), "job=sample") && strings.Contains(log.Text(), "verdict=delivered")
	}
	require.True(t, sampled, "the sample job is not delivered")

	script := strings.NewReplacer("127.0.0.1:8080", ports["api"], "127.0.0.1:8081", ports["inbox"]).
		Replace(strings.Join(steps[1:], "")) + "\nringback job get broken --jq .state"
	out, err := bash(`export PATH="$PWD:$PATH" RINGBACK_SERVER=http://` + ports["api"] + "\n" + script).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?s)default +crm +failing .*RINGBACK OK .*delivered\n$`, string(out))
}
