// Loaded before the stylesheet applies, so that the page is not first painted in the other theme.
try {
  const theme = localStorage.getItem('ringback.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {} // storage is blocked: the system's theme
