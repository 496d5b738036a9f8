// What pages do when scripts run. Every part is a module of its own and works alone; without any of them pages still work.
import { keepMorphsGentle } from "./morph.js";
import { followEvents } from "./events.js";
import { keepToasts } from "./toasts.js";
import { askBefore } from "./confirm.js";
import { keepTimes } from "./times.js";
import { handleKeys, openTarget } from "./keys.js";
import { preparePalette } from "./palette.js";
import { switchTheme } from "./theme-switch.js";
import { offerNotifications } from "./notify.js";
import "./log.js";
import "./diff.js";
import { sortBacklog } from "./backlog.js";

keepMorphsGentle();
askBefore();
keepToasts();
keepTimes();
handleKeys();
openTarget();
window.addEventListener("hashchange", openTarget);
preparePalette();
offerNotifications();
sortBacklog();
document.getElementById("switch-theme")?.addEventListener("click", switchTheme);
document.getElementById("tools")?.removeAttribute("hidden");
followEvents();
