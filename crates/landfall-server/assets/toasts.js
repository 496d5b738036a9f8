// Toasts: told for a while, longer when something went wrong, and for as long as somebody points at them.

/** How long each kind stays, in milliseconds. */
const STAY = { good: 3000, info: 3000, warn: 5000, bad: 8000 };
const TOASTS_MAX = 5; // more cover the page

/** @typedef {keyof typeof STAY} Kind */

/** Tells something.
 * @param {Kind} kind
 * @param {string} text
 * @param {string} [hint]
 */
export function toast(kind, text, hint) {
  const place = document.getElementById("toasts");
  if (!place) return;
  const box = document.createElement("div");
  box.className = `toast ${kind}`;
  box.dataset.toast = kind;
  const words = document.createElement("p");
  const mark = document.createElement("span");
  mark.setAttribute("aria-hidden", "true");
  mark.textContent = { good: "✓ ", info: "i ", warn: "! ", bad: "✗ " }[kind];
  words.append(mark, text);
  box.append(words);
  if (hint) {
    const more = document.createElement("p");
    more.className = "hint";
    more.textContent = hint;
    box.append(more);
  }
  place.append(box);
}

/** Lets toasts go in time, those that the server sent too. */
export function keepToasts() {
  const place = document.getElementById("toasts");
  if (!place) return;
  for (const box of place.children) keep(box);
  // A form that got no answer, or one that cannot be told: the page itself says when the connection is lost.
  const failed = (/** @type {string} */ text, /** @type {string} */ hint) => (/** @type {Event} */ event) => {
    if (event.target instanceof HTMLFormElement) toast("bad", text, hint);
  };
  document.addEventListener("htmx:sendError", failed("The server does not answer.", "Nothing is known to have changed; try again when the connection is back."));
  document.addEventListener("htmx:responseError", failed("The server refused that.", "Reload the page and try again; you may have to sign in anew."));
  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node instanceof Element) keep(node);
    while (place.children.length > TOASTS_MAX) place.firstElementChild?.remove();
  }).observe(place, { childList: true });
}

/** @param {Element} box */
function keep(box) {
  if (!(box instanceof HTMLElement) || box.dataset.kept) return;
  box.dataset.kept = "yes";
  const kind = /** @type {Kind} */ (box.dataset.toast ?? "info");
  const stay = STAY[kind] ?? STAY.info;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "small plain icon";
  close.setAttribute("aria-label", "Close");
  close.textContent = "×";
  close.addEventListener("click", () => box.remove());
  box.append(close);
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      box.classList.add("leaving");
      window.setTimeout(() => box.remove(), 300);
    }, stay);
  };
  const hold = () => {
    clearTimeout(timer);
    box.classList.remove("leaving");
  };
  box.addEventListener("pointerenter", hold);
  box.addEventListener("focusin", hold);
  box.addEventListener("pointerleave", wait);
  box.addEventListener("focusout", wait);
  wait();
}
