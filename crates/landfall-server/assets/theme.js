// Before anything is drawn: the theme that was chosen here. Without it the system's is taken.
(() => {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark" || theme === "contrast") document.documentElement.dataset.theme = theme;
})();
