// Asks before something that cannot be taken back lightly: forms and buttons with `data-confirm`.
// Without scripts such a form has a box to tick; here the dialog takes its place.

/** Forms that were asked about and may go. @type {WeakSet<HTMLFormElement>} */
const allowed = new WeakSet();

/** Asks a person, and says what they chose.
 * @param {string} question
 * @param {string} yes what the button says
 * @returns {Promise<boolean>}
 */
export function confirm(question, yes) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "confirm-question");
  dialog.id = "confirm";
  const text = document.createElement("p");
  text.id = "confirm-question";
  text.textContent = question;
  const foot = document.createElement("div");
  foot.className = "dialog-foot";
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.textContent = "Cancel";
  cancel.autofocus = true;
  const go = document.createElement("button");
  go.type = "button";
  go.className = "danger";
  go.textContent = yes;
  foot.append(cancel, go);
  dialog.append(text, foot);
  document.body.append(dialog);
  return new Promise((resolve) => {
    cancel.addEventListener("click", () => dialog.close("no"));
    go.addEventListener("click", () => dialog.close("yes"));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
  });
}

/** Watches every form of the page. */
export function askBefore() {
  // Before the browser looks whether the box is ticked.
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button, input[type=submit]") : null;
    const form = button instanceof HTMLButtonElement || button instanceof HTMLInputElement ? button.form : null;
    for (const box of form?.querySelectorAll(".sure input") ?? []) if (box instanceof HTMLInputElement) box.checked = true;
  }, true);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement)) return;
    const submitter = /** @type {SubmitEvent} */ (event).submitter;
    const question = submitter?.dataset.confirm ?? form.dataset.confirm;
    if (!question || allowed.delete(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    confirm(question, (submitter ?? form.querySelector("button"))?.firstChild?.textContent?.trim() || "Yes").then((yes) => {
      if (!yes || !form.isConnected) return;
      allowed.add(form);
      form.requestSubmit(submitter?.isConnected ? submitter : null);
    });
  }, true);
}
