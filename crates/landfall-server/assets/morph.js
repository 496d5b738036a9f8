// A page is drawn again while somebody uses it. What they opened, typed or ticked stays as it is.

/** Fields that somebody has changed since they were sent. @type {WeakSet<Element>} */
const touched = new WeakSet();

/** Tells the morphing what to leave alone. */
export function keepMorphsGentle() {
  const touch = (/** @type {Event} */ event) => {
    if (event.target instanceof Element) touched.add(event.target);
  };
  document.addEventListener("input", touch);
  document.addEventListener("change", touch);
  const forget = (/** @type {Event} */ event) => {
    if (event.target instanceof HTMLFormElement) for (const field of event.target.elements) touched.delete(field);
  };
  document.addEventListener("reset", forget);
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target;
    const done = /** @type {CustomEvent} */ (event).detail?.successful;
    if (!(form instanceof HTMLFormElement) || !done) return;
    // What was sent and taken is no draft any more; a refusal keeps the words.
    if (!document.querySelector("#toasts > :last-child[data-toast=bad]")) form.reset();
  });
  const morphing = window.Idiomorph;
  if (!morphing) return;
  morphing.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !(name === "open" && (node instanceof HTMLDetailsElement || node instanceof HTMLDialogElement));
  morphing.defaults.callbacks.beforeNodeMorphed = (node) => {
    if (!(node instanceof Element)) return true;
    if (node instanceof HTMLDialogElement && node.open) return false;
    return !touched.has(node) && !node.hasAttribute("data-keep");
  };
}
