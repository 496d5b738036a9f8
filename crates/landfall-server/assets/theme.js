// Before anything is drawn: the theme that was chosen here. Without it the system's is taken.
(() => {
  document.documentElement.classList.add("scripted");
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark" || theme === "contrast") document.documentElement.dataset.theme = theme;
  } catch {
    // A browser that keeps nothing takes the system's.
  }
})();
