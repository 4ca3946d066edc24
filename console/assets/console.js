// What the console does in a browser beyond its HTML. Every page works without it.
'use strict';
(() => {
  const $ = (selector) => document.querySelector(selector)
  const on = (name, handle, capture) => document.addEventListener(name, handle, capture)
  const make = (tag, props, ...children) => {
    const made = Object.assign(document.createElement(tag), props)
    made.append(...children)
    return made
  }
  // Storage may be blocked: then choices last as long as the page.
  const memory = {}
  const load = (key) => {
    try { return localStorage.getItem('ringback.' + key) } catch { return memory[key] }
  }
  const save = (key, value) => {
    memory[key] = value
    try { localStorage.setItem('ringback.' + key, value) } catch {}
  }
  const status = make('div', { className: 'visually-hidden', role: 'status' })
  document.body.append(status)

  // Theme: automatic, light, dark.
  const themes = ['auto', 'light', 'dark']
  const theme = () => (themes.includes(load('theme')) ? load('theme') : 'auto')
  const showTheme = () => {
    if (theme() === 'auto') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme()
    const button = $('#theme')
    if (button) Object.assign(button, { hidden: false, textContent: 'Theme: ' + theme() })
  }

  // Live updates. hx-sse reconnects a stream that has worked; what it gives up is opened again here. A stream is closed by
  // deleting its element: hx-sse has no other way that ends its loop.
  const host = $('#live[data-live]')
  const silence = Number(host?.dataset.silence) * 1000
  let stream, connected, worked, failures = 0, retry, watchdog, notice
  const show = (state) => {
    clearTimeout(notice)
    const label = $('#live-state')
    if (label && label.textContent !== state) label.textContent = label.dataset.state = state
  }
  // In a new tab, so that what is typed here stays.
  const showSignedOut = () => {
    show('signed out')
    const label = $('#live-state')
    label.append(': ', make('a', { href: label.dataset.signIn, target: '_blank', rel: 'noopener', textContent: 'sign in' }))
  }
  // A reconnection that takes less than two seconds is not worth a word.
  const showLost = () => {
    clearTimeout(notice)
    notice = setTimeout(show, 2000, 'reconnecting')
  }
  const close = () => {
    clearTimeout(retry)
    clearTimeout(watchdog)
    const old = stream
    stream = connected = null
    if (!old) return
    htmx.trigger(old, 'htmx:abort')
    htmx.swap({ sourceElement: old, target: old, text: '', swap: 'delete' })
  }
  const watch = () => {
    clearTimeout(watchdog)
    if (silence) watchdog = setTimeout(open, silence)
  }
  const open = () => {
    close()
    if (!host) return show('')
    const paused = load('paused') === 'yes'
    Object.assign($('#live-toggle') || {}, { hidden: false, textContent: paused ? 'Resume' : 'Pause' })
    if (paused) return show('paused')
    if (document.hidden) return
    showLost()
    // Not at once, so that tabs and buttons that are switched back and forth make no requests.
    retry = setTimeout(connect, 100)
  }
  const connect = async () => {
    const mine = stream = make('div')
    mine.setAttribute('hx-swap', 'none')
    mine.setAttribute('hx-config', '{"cache":"no-store","sse":{"reconnect":true,"pauseOnBackground":false,"releaseOn":"immediate"}}')
    host.append(mine)
    watch()
    await htmx.ajax('GET', host.dataset.live, { source: mine }).catch(() => {})
    if (stream === mine && !connected) openLater()
  }
  const openLater = () => {
    close()
    showLost()
    retry = setTimeout(open, Math.min(60000, 1000 * 2 ** failures++) * (0.7 + 0.6 * Math.random()))
  }
  // Not signed in any more, never allowed, or removed: only the first is mended by loading the page again. That would lose what is typed.
  let typed
  on('input', ({ target }) => { typed ||= target.closest('main form') })
  const refused = (code) => {
    if (![401, 403, 404].includes(code)) return
    close()
    if (code === 404) return show('gone: load the page again')
    if (worked && !typed) return location.reload()
    if (code === 401) showSignedOut()
    else show('')
  }
  const onStream = (name, handle) => on('htmx:' + name, (e) => e.target === stream && handle(e.detail))
  onStream('sse:after:connection', () => {
    connected = worked = true
    show('live')
    watch()
  })
  onStream('sse:before:message', () => {
    failures = 0
    watch()
  })
  onStream('sse:before:connection', ({ connection }) => connection.attempt && showLost())
  onStream('sse:error', (detail) => refused(detail.status))
  onStream('response:error', ({ ctx }) => refused(ctx.response.status))
  onStream('sse:close', () => openLater())
  // The preview of a form.
  on('htmx:response:error', ({ target, detail }) => target !== stream && detail.ctx.response.status === 401 && showSignedOut())
  on('visibilitychange', open)
  addEventListener('online', open)

  // Times: the title is the reader's local time.
  const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })
  const showTimes = () => {
    for (const time of document.querySelectorAll('time[datetime]')) {
      const at = new Date(time.dateTime)
      if (!isNaN(at)) time.title = clock.format(at)
    }
  }
  on('htmx:after:swap', showTimes)

  // Buttons that need scripts.
  const showButtons = () => document.querySelectorAll('[data-copy],[data-opens]').forEach((button) => { button.hidden = false })
  on('htmx:after:swap', showButtons)

  // Copying. Over plain HTTP there is no clipboard API.
  const copy = async (button) => {
    const from = $(button.dataset.copy)
    const text = from.value ?? from.textContent
    let done
    try {
      await navigator.clipboard.writeText(text)
      done = true
    } catch {
      const area = make('textarea', { className: 'visually-hidden', value: text })
      button.after(area)
      area.select()
      done = document.execCommand('copy')
      area.remove()
      button.focus()
    }
    const label = button.dataset.label ??= button.textContent
    button.textContent = status.textContent = done ? 'Copied' : 'Not copied: select the text'
    setTimeout(() => { button.textContent = label; status.textContent = '' }, 2000)
  }

  on('click', ({ target }) => {
    const button = target.closest('button')
    if (!button) return
    if (button.dataset.copy) copy(button)
    if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal()
    if (button.id === 'theme') {
      save('theme', themes[(themes.indexOf(theme()) + 1) % 3])
      showTheme()
    }
    if (button.id === 'live-toggle') {
      save('paused', load('paused') === 'yes' ? 'no' : 'yes')
      open()
    }
  })

  // Forms: ask first, before htmx sees the submission; send once.
  const confirmed = new WeakSet()
  on('submit', (e) => {
    const form = e.target, by = e.submitter
    const question = by?.dataset.confirm || form.dataset.confirm
    if (!question || confirmed.delete(form)) return
    e.preventDefault()
    e.stopImmediatePropagation()
    const dialog = make('dialog', {}, make('form', { method: 'dialog' }, make('p', { textContent: question }),
      make('div', { className: 'actions' }, make('button', { textContent: 'Go back' }),
        make('button', { value: 'yes', className: by?.className || 'primary', textContent: by?.textContent || 'OK' }))))
    dialog.onclose = () => {
      dialog.remove()
      if (dialog.returnValue !== 'yes') return by?.focus()
      confirmed.add(form)
      form.requestSubmit(by)
      confirmed.delete(form)
    }
    document.body.append(dialog)
    dialog.showModal()
  }, true)
  const setDisabled = (form, disabled) => {
    for (const button of form.querySelectorAll('button')) button.disabled = disabled
  }
  // Later, since a disabled button is not among the values that are sent. The server answers within 10 s of what is sent, unless the reader has
  // stopped the request.
  on('submit', (e) => {
    if (e.defaultPrevented || !('once' in e.target.dataset)) return
    setTimeout(setDisabled, 0, e.target, true)
    setTimeout(setDisabled, 60000, e.target, false)
  })
  addEventListener('pageshow', (e) => e.persisted && document.querySelectorAll('form[data-once]').forEach((f) => setDisabled(f, false)))

  // Keys.
  let went = -Infinity // when g was pressed
  const move = (step) => {
    const links = [...document.querySelectorAll('table.list tbody tr')].map((row) => row.querySelector('a[href]')).filter(Boolean)
    const at = links.findIndex((link) => link.closest('tr').contains(document.activeElement))
    const link = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step]
    link?.focus()
    link?.scrollIntoView({ block: 'nearest' })
  }
  const press = (key) => {
    if (performance.now() - went < 1500) {
      went = -Infinity
      return $(`nav a[data-key="${CSS.escape(key)}"]`)?.click() ?? true
    }
    const search = $('[data-search]')
    if (key === 'g') went = performance.now()
    else if (key === 'j') move(1)
    else if (key === 'k') move(-1)
    else if (key === '/' && search) { search.focus(); search.select() }
    else if (key === '?' && $('#keys')) $('#keys').showModal()
    else return
    return true
  }
  on('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || e.defaultPrevented || e.key.length > 1) return
    if (load('keys') === 'off' || $('dialog[open]') || e.target.closest?.('input,textarea,select,[contenteditable]')) return
    if (press(e.key)) e.preventDefault()
  })
  on('change', ({ target }) => target.id === 'keys-on' && save('keys', target.checked ? 'on' : 'off'))

  // Choices of other tabs.
  addEventListener('storage', ({ key }) => key === 'ringback.paused' ? open() : showTheme())
  if ($('#keys-on')) $('#keys-on').checked = load('keys') !== 'off'
  showButtons()
  showTheme()
  showTimes()
  // After htmx has started, which waits for a timer too.
  setTimeout(open)
})()
