'use strict';
// The theme that was chosen here before, ahead of the first paint.
(() => {
  try {
    const theme = localStorage.getItem('lately.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch { /* no storage: the theme is that of the system */ }
})();
