// The theme: the system's, light, dark, high contrast, and round again.
import { toast } from "./toasts.js";

const THEMES = ["", "light", "dark", "contrast"];
const NAMES = ["the system's", "light", "dark", "high contrast"];

/** Takes the next theme, and keeps it for this browser. */
export function switchTheme() {
  const root = document.documentElement;
  const next = (THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length;
  const theme = THEMES[next];
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  try {
    if (theme) localStorage.setItem("theme", theme);
    else localStorage.removeItem("theme");
  } catch {
    // It lasts until the page is left.
  }
  toast("info", `Theme: ${NAMES[next]}`);
}
