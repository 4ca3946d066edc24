package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForms_CanBeSentAgainIfTheRequestWasStopped(t *testing.T) {
	t.Parallel()
	s := startService(t, "")
	b := s.open(t)
	b.signIn(rootToken)
	b.goTo("schedules/new")
	b.eval(`(() => {
		const begin = setTimeout
		window.setTimeout = (does, wait, ...args) => wait > 10000 ? (window.later = () => does(...args)) : ` +
		`begin(does, wait, ...args)
		document.querySelector('#schedule-form').dispatchEvent(new Event('submit', {bubbles: true, cancelable: ` +
		`true})) // which sends nothing
	})()`)
	disabled := `[...document.querySelectorAll('#schedule-form button')].every((button) => button.disabled)`
	b.wait(disabled)
	b.eval(`window.later()`)
	require.False(t, value[bool](b, disabled))
}
