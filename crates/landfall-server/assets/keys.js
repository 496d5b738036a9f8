// The keys of the pages: one table lists them and does what they say. Pages have keys of their own, in `data-key` of the navigation.
import { openAddTask } from "./add-task.js";
import { openPalette } from "./palette.js";

/** @typedef {{ key: string, what: string, run: (event: KeyboardEvent) => void }} Key */

/** Every key that does something besides opening a page. @type {Key[]} */
export const KEYS = [
  { key: "?", what: "Show the keys", run: () => showKeys() },
  { key: "Ctrl-K", what: "Find a page, a task or an action", run: () => openPalette() },
  { key: "/", what: "Search on this page", run: () => search() },
  { key: "j", what: "Next card or row", run: () => step(1) },
  { key: "k", what: "Previous card or row", run: () => step(-1) },
  { key: "Enter", what: "Open it", run: () => go("") },
  { key: "+", what: "Add a task", run: () => openAddTask() },
  { key: "i", what: "Actions: message, pause, redirect", run: () => go("#intervene") },
  { key: "d", what: "Defer: work on it later", run: () => submit(chosen()?.querySelector("form[data-do=later]")) },
  { key: "b", what: "Block it, with a reason", run: () => go("#block-reason") },
  { key: "x", what: "Stop it", run: () => submit(chosen()?.querySelector("form[data-do=stop]") ?? document.querySelector("main form[data-do=stop-task]")) },
  { key: "1", what: "Open the first agent's task (to 9)", run: (event) => agent(Number(event.key)) },
];

/** Listens to the keys of the whole page. */
export function handleKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
    // What the page itself offers comes first.
    const own = document.querySelector(`main [data-press="${CSS.escape(event.key)}"]`);
    if (own instanceof HTMLElement) {
      event.preventDefault();
      press(own);
      return;
    }
    const name = /^[1-9]$/.test(event.key) ? "1" : event.key;
    const key = KEYS.find((it) => it.key === name);
    if (key) {
      // A button or link that has the focus is pressed by it.
      if (name === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary, [tabindex='0']")) return;
      event.preventDefault();
      key.run(event);
      return;
    }
    const links = [...document.querySelectorAll(".rail a[data-key]")];
    const of = (/** @type {string} */ letter) => links.find((it) => it instanceof HTMLElement && it.dataset.key === letter);
    const link = of(event.key) ?? of(event.key.toLowerCase());
    if (link instanceof HTMLAnchorElement) {
      event.preventDefault();
      link.click();
    }
  });
}

/** Opens what the address points into, where it is folded, and takes the focus there. */
export function openTarget() {
  // A browser may set `:target` only when it draws the page, after scripts have run.
  const target = document.querySelector(":target") ?? document.getElementById(location.hash.slice(1));
  if (target?.id === "main") return; // whoever skips the navigation comes to the beginning of the page
  for (let at = /** @type {Element | null} */ (target); at; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
  if (target?.id === "decide") {
    // A question wants words. Elsewhere a key press must not decide by mistake: the focus stays on the decision as a whole.
    const words = target.querySelector("textarea[required]") ?? target;
    if (words instanceof HTMLElement) keepFocus(target, () => words.focus({ preventScroll: true }));
    return;
  }
  const field = target?.matches("input, textarea, select, button") ? target : target?.querySelector("input:not([type=hidden]), textarea, summary");
  if (target && field instanceof HTMLElement) keepFocus(target, () => field.focus());
  target?.scrollIntoView({ block: "nearest" });
}

/** Takes the focus to a place inside of what the address points to. A browser follows the address once more when it draws the
 * page for the first time, after scripts have run: it then focuses the target itself, or nothing.
 * @param {Element} target
 * @param {() => void} focus
 */
function keepFocus(target, focus) {
  focus();
  if (document.readyState === "complete") return;
  const again = () => {
    if (document.activeElement === document.body || document.activeElement === target) focus();
  };
  window.addEventListener("load", () => requestAnimationFrame(() => requestAnimationFrame(again)), { once: true });
}

/** Whether keys are letters of a text now.
 * @param {EventTarget | null} target
 */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select");
}

/** What j and k go through: cards, and rows of tables. */
function items() {
  return [...document.querySelectorAll("main [data-task], main [data-row]")].filter((it) => it instanceof HTMLElement && it.offsetParent !== null);
}

/** The card or row that the focus is in. @returns {HTMLElement | null} */
function chosen() {
  const at = document.activeElement?.closest("[data-task], [data-row]");
  return at instanceof HTMLElement ? at : null;
}

/** @param {number} by */
function step(by) {
  const all = items();
  const now = chosen();
  const at = now ? all.indexOf(now) : by > 0 ? -1 : all.length;
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  const link = next?.querySelector(".card-title a, a, button");
  if (link instanceof HTMLElement) {
    link.focus();
    next?.scrollIntoView({ block: "nearest" });
  }
}

/** Opens the chosen task, at a place of its page; on a task's own page, that place.
 * @param {string} place
 */
function go(place) {
  const task = chosen()?.dataset.task;
  if (task) location.href = `/tasks/${encodeURIComponent(task)}${place}`;
  else if (place && document.querySelector(place)) {
    location.hash = place;
    openTarget();
  }
}

/** @param {number} number */
function agent(number) {
  const card = document.querySelectorAll("#column-working [data-task], [data-agent]")[number - 1];
  const link = card?.querySelector("a[href]");
  if (link instanceof HTMLAnchorElement) link.click();
}

function search() {
  const field = document.querySelector("main input[type=search]");
  if (field instanceof HTMLInputElement) {
    field.focus();
    field.select();
  } else openPalette();
}

/** Does what a part of the page says: a link is opened, a form is sent, or its text is begun.
 * @param {HTMLElement} own
 */
function press(own) {
  if (!(own instanceof HTMLFormElement)) own.click();
  else {
    const text = own.querySelector("textarea");
    if (text && !text.value) text.focus();
    else own.requestSubmit();
  }
}

/** @param {Element | null | undefined} form */
function submit(form) {
  if (form instanceof HTMLFormElement) form.requestSubmit();
}

/** Shows every key in a dialog. */
export function showKeys() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Keys");
  dialog.id = "keys-dialog";
  const head = document.createElement("div");
  head.className = "dialog-head";
  const title = document.createElement("h2");
  title.textContent = "Keys";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "small";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  head.append(title, close);
  const table = document.createElement("table");
  table.className = "table";
  /** @type {[string, string][]} */
  const pages = [...document.querySelectorAll(".rail a[data-key]")].map((it) => [
    it instanceof HTMLElement ? (it.dataset.key ?? "") : "",
    it.firstChild?.textContent?.trim() ?? "",
  ]);
  /** @type {[string, string][]} */
  const own = [...document.querySelectorAll("main [data-press]")].map((it) => [
    it instanceof HTMLElement ? (it.dataset.press ?? "") : "",
    (it instanceof HTMLFormElement ? it.querySelector("button[type=submit]") : it)?.firstChild?.textContent?.trim() ?? "",
  ]);
  for (const [key, what] of [...own, ...KEYS.map((it) => [it.key, it.what]), ...pages]) {
    const row = table.insertRow();
    const left = row.insertCell();
    const cap = document.createElement("kbd");
    cap.textContent = key ?? "";
    left.append(cap);
    row.insertCell().textContent = what ?? "";
  }
  dialog.append(head, table);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
