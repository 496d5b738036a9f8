// The backlog with a mouse or keys: tasks are dragged to their place in line, and many are ticked at once.
// Whatever happens here fills in a form of the page and sends it, so nothing can be done that a page without scripts cannot do.

/** Prepares lists that can be sorted, now and whenever the page was drawn again. */
export function sortBacklog() {
  document.addEventListener("dragstart", (event) => {
    const row = rowOf(event.target);
    if (!row || !event.dataTransfer) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", row.dataset.task ?? "");
    row.classList.add("dragged");
  });
  document.addEventListener("dragend", () => {
    for (const it of document.querySelectorAll(".dragged, .dropping")) it.classList.remove("dragged", "dropping");
  });
  document.addEventListener("dragover", (event) => {
    const zone = zoneOf(event.target);
    const row = document.querySelector("[data-task].dragged");
    for (const it of document.querySelectorAll(".dropping")) if (it !== zone) it.classList.remove("dropping");
    if (!zone || !row) return;
    event.preventDefault();
    zone.classList.add("dropping");
  });
  document.addEventListener("drop", (event) => {
    const zone = zoneOf(event.target);
    const row = document.querySelector("[data-task].dragged");
    if (!zone || !(row instanceof HTMLElement)) return;
    event.preventDefault();
    move(row, zone.dataset.zone ?? "");
  });
  document.addEventListener("keydown", (event) => {
    const handle = event.target instanceof Element ? event.target.closest("[data-handle]") : null;
    const row = rowOf(handle);
    if (!row || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    const select = row.querySelector("select[name=what]");
    if (!(select instanceof HTMLSelectElement)) return;
    const next = select.options[select.selectedIndex + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) move(row, next.value);
  });
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-tick-all]") : null;
    if (!button) return;
    const boxes = ticks();
    const all = boxes.every((it) => it.checked);
    for (const box of boxes) {
      box.checked = !all;
      box.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  document.addEventListener("change", count);
  document.addEventListener("reset", () => setTimeout(count));
  document.addEventListener("htmx:afterSettle", prepare);
  prepare();
}

/** Shows what only works with scripts. */
function prepare() {
  for (const it of document.querySelectorAll("[data-handle], [data-tick-all]")) it.removeAttribute("hidden");
  count();
}

/** Says how many are ticked. */
function count() {
  const sign = document.querySelector("[data-ticked]");
  if (!(sign instanceof HTMLElement)) return;
  const many = ticks().filter((it) => it.checked).length;
  sign.textContent = String(many);
  sign.hidden = many === 0;
}

/** The boxes of the table. @returns {HTMLInputElement[]} */
function ticks() {
  return [...document.querySelectorAll("input[form=bulk][type=checkbox]")].filter((it) => it instanceof HTMLInputElement);
}

/** The task of the list that an element is in. @param {EventTarget | null} target @returns {HTMLElement | null} */
function rowOf(target) {
  const row = target instanceof Element ? target.closest(".zone [data-task]") : null;
  return row instanceof HTMLElement ? row : null;
}

/** The place in line that an element is in. @param {EventTarget | null} target @returns {HTMLElement | null} */
function zoneOf(target) {
  const zone = target instanceof Element ? target.closest("[data-zone]") : null;
  return zone instanceof HTMLElement ? zone : null;
}

/** Sends the form that moves a task.
 * @param {HTMLElement} row
 * @param {string} place
 */
function move(row, place) {
  const select = row.querySelector("select[name=what]");
  if (!(select instanceof HTMLSelectElement) || select.value === place) return;
  select.value = place;
  if (select.value === place) select.form?.requestSubmit();
}
