'use strict';
// Sets the theme that was stored, before the first paint.
(() => {
  try {
    const theme = localStorage.getItem('lately.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch { /* no storage: the theme is that of the system */ }
})();
