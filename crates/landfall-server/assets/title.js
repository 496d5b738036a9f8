// The title of the window counts what waits for the person, so that a tab in the background says so.

/** Keeps the count in the title as the page is drawn again. */
export function countInTitle() {
  const write = () => {
    const waiting = Number(document.getElementById("state")?.dataset.needs ?? 0);
    const plain = document.title.replace(/^\(\d+\) /, "");
    const title = waiting > 0 ? `(${waiting}) ${plain}` : plain;
    if (document.title !== title) document.title = title;
  };
  document.addEventListener("htmx:afterSettle", write);
  write();
}
