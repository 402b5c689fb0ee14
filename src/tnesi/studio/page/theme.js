// Runs before the page is drawn, so that a chosen theme does not flash.
(() => {
  const chosen = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage is switched off
    }
  };
  const theme = chosen("tnesi-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  if (chosen("tnesi-invert") === "1") document.documentElement.dataset.invert = "1";
})();
