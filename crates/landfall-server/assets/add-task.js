// Adds a task from any page, in a dialog: Enter adds it. Without scripts the form of the backlog does the same.
import { toast } from "./toasts.js";

/** Opens the dialog. */
export function openAddTask() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = document.createElement("dialog");
  dialog.id = "add-task";
  dialog.setAttribute("aria-labelledby", "add-task-title");
  const head = document.createElement("div");
  head.className = "dialog-head";
  const title = document.createElement("h2");
  title.id = "add-task-title";
  title.textContent = "Add a task";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "small plain";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  head.append(title, close);
  const form = document.createElement("form");
  form.className = "form";
  form.method = "post";
  form.action = "/do/backlog-add";
  const name = field("Title", "input", "title");
  name.control.required = true;
  const body = field("What is wanted", "textarea", "body");
  const foot = document.createElement("div");
  foot.className = "dialog-foot";
  const more = document.createElement("a");
  more.href = "/backlog#new-task";
  more.textContent = "More fields";
  const add = document.createElement("button");
  add.type = "submit";
  add.className = "primary";
  add.textContent = "Add";
  foot.append(more, add);
  form.append(name.label, body.label, foot);
  dialog.append(head, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    add.disabled = true;
    try {
      if (await send(form)) dialog.close();
    } finally {
      add.disabled = false;
    }
  });
  // A line of a text ends with Enter; with Ctrl it adds.
  body.control.addEventListener("keydown", (event) => {
    if (event instanceof KeyboardEvent && event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  name.control.focus();
}

/** Makes the links that lead to the form open the dialog instead. */
export function prepareAddTask() {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("[data-open-add]") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openAddTask();
  });
}

/** A field with its label.
 * @param {string} text
 * @param {"input" | "textarea"} kind
 * @param {string} name
 */
function field(text, kind, name) {
  const label = document.createElement("label");
  label.className = "field";
  const words = document.createElement("span");
  words.textContent = text;
  const control = document.createElement(kind);
  control.name = name;
  control.id = `add-task-field-${name}`;
  label.append(words, control);
  return { label, control };
}

/** Sends the form, shows what the server says, and tells whether the task was added.
 * @param {HTMLFormElement} form
 */
async function send(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === "string") fields.append(name, value);
  try {
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { "hx-request": "true" } });
    const made = document.createElement("template");
    made.innerHTML = await answer.text(); // a toast of our own server, escaped there
    const box = made.content.querySelector("[data-toast]");
    if (!answer.ok || !(box instanceof HTMLElement)) throw new Error(String(answer.status));
    const added = box.dataset.toast === "good";
    document.getElementById("toasts")?.append(box);
    if (added) window.htmx?.trigger(document.body, "changed");
    return added;
  } catch {
    toast("bad", "The server did not add the task.", "Reload the page and try again.");
    return false;
  }
}
