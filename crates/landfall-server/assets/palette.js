// The palette: every page, every task and every action by typing a part of its name.
import { openAddTask } from "./add-task.js";
import { switchTheme } from "./theme-switch.js";

/** @typedef {{ what: string, kind: string, run: () => void }} Item */

const TASKS_MAX = 12;
const CALM_MS = 120;

/** Makes the button of the head open the palette. */
export function preparePalette() {
  document.getElementById("open-palette")?.addEventListener("click", openPalette);
}

/** @param {string} path */
function to(path) {
  return () => {
    location.href = path;
  };
}

/** What is always there: pages, actions of this moment, and a few of our own. @returns {Item[]} */
function fixed() {
  const pages = [...document.querySelectorAll(".rail a[href]")].map((link) => {
    const path = link.getAttribute("href") ?? "/";
    return { what: link.firstChild?.textContent?.trim() ?? "", kind: "page", run: to(path) };
  });
  const actions = [...document.querySelectorAll("form[data-action]")].flatMap((form) =>
    form instanceof HTMLFormElement ? [{ what: form.dataset.action ?? "", kind: "action", run: () => form.requestSubmit() }] : [],
  );
  return [
    ...actions,
    ...pages,
    { what: "Add a task", kind: "action", run: openAddTask },
    { what: "Access: browsers, tokens, pair a phone", kind: "page", run: to("/sessions") },
    { what: "Problems explained", kind: "page", run: to("/problems") },
    { what: "Help and keys", kind: "page", run: to("/help") },
    { what: "Change the theme", kind: "action", run: switchTheme },
  ];
}

/** Tasks whose title or body has these words, or that are called so.
 * @param {string} text
 * @param {AbortSignal} signal
 * @returns {Promise<Item[]>}
 */
async function tasks(text, signal) {
  /** @type {Item[]} */
  const found = [];
  const id = /^\s*t?(\d{1,9})\s*$/i.exec(text)?.[1];
  if (id) found.push({ what: `T${id}`, kind: "task", run: to(`/tasks/T${id}`) });
  if (text.trim().length < 2) return found;
  try {
    const answer = await fetch(`/api/v1/tasks?limit=${TASKS_MAX}&text=${encodeURIComponent(text.trim())}`, { signal });
    if (!answer.ok) return found;
    const page = await answer.json();
    for (const task of page.tasks ?? []) {
      const path = `/tasks/${encodeURIComponent(String(task.id))}`;
      found.push({ what: `${task.id} ${task.title}`, kind: String(task.status), run: to(path) });
    }
  } catch {
    // Typed on, or no connection: the pages and actions are still there.
  }
  return found;
}

/** Opens the palette. */
export function openPalette() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = document.createElement("dialog");
  dialog.className = "palette";
  dialog.id = "palette";
  dialog.setAttribute("aria-label", "Find a page, a task or an action");
  const field = document.createElement("input");
  field.type = "text";
  field.placeholder = "A page, a task, an action";
  field.autocomplete = "off";
  field.spellcheck = false;
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-expanded", "true");
  field.setAttribute("aria-controls", "palette-list");
  field.setAttribute("aria-label", "A page, a task, an action");
  const list = document.createElement("ul");
  list.className = "palette-list";
  list.id = "palette-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Found");
  dialog.append(field, list);
  document.body.append(dialog);

  const always = fixed();
  /** @type {Item[]} */
  let shown = [];
  let at = 0;
  let asked = new AbortController();
  let timer = 0;

  const mark = () => {
    [...list.children].forEach((row, place) => row.setAttribute("aria-selected", String(place === at)));
    const row = list.children[at];
    if (row) {
      field.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  };
  const choose = (/** @type {number} */ place) => {
    const item = shown[place];
    if (!item) return;
    dialog.close();
    item.run();
  };
  const draw = (/** @type {Item[]} */ items) => {
    shown = items;
    at = 0;
    list.replaceChildren(
      ...items.map((item, place) => {
        const row = document.createElement("li");
        row.className = "palette-item";
        row.id = `palette-${place}`;
        row.setAttribute("role", "option");
        const what = document.createElement("span");
        what.className = "what clip";
        what.textContent = item.what;
        const kind = document.createElement("span");
        kind.className = "kind";
        kind.textContent = item.kind;
        row.append(what, kind);
        row.addEventListener("click", () => choose(place));
        return row;
      }),
    );
    mark();
  };
  const matching = () => {
    const parts = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    return always.filter((item) => parts.every((part) => item.what.toLowerCase().includes(part)));
  };
  field.addEventListener("input", () => {
    asked.abort();
    const mine = (asked = new AbortController());
    draw(matching());
    clearTimeout(timer);
    timer = window.setTimeout(async () => {
      const found = await tasks(field.value, mine.signal);
      if (!mine.signal.aborted) draw([...matching(), ...found]);
    }, CALM_MS);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % Math.max(shown.length, 1);
      mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(at);
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    asked.abort();
    clearTimeout(timer);
    dialog.remove();
  });
  draw(always);
  dialog.showModal();
  field.focus();
}
