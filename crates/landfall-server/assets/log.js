// The log of a task: only some pages of it are in the document, others are fetched when somebody scrolls to them.
// It follows an output as it grows, by the stream of that output, and says where it is.

const PAGES_MAX = 6; // pages in the document; the rest is on the server
const ROWS_MAX = 400; // rows of a page that grows
const PARTS_MAX = 50; // more than the largest output that is kept has
const NEAR_PX = 900; // how near to an end the next page is fetched

class LogView {
  /** @param {HTMLElement} root @param {HTMLElement} scroll */
  constructor(root, scroll) {
    this.root = root;
    this.scroll = scroll;
    this.lines = root.dataset.lines ?? "";
    this.streamUrl = root.dataset.stream ?? "";
    this.busy = false;
    /** @type {EventSource | null} */
    this.stream = null;
    this.follow = /** @type {HTMLInputElement | null} */ (document.getElementById("log-follow"));
    this.range = /** @type {HTMLInputElement | null} */ (document.getElementById("log-range"));
    document.getElementById("log-tools")?.removeAttribute("hidden");
    scroll.addEventListener("scroll", () => this.look(), { passive: true });
    this.follow?.addEventListener("change", () => (this.follow?.checked ? this.begin() : this.end()));
    this.range?.addEventListener("change", () => this.jump());
    document.getElementById("log-form")?.addEventListener("click", (event) => this.click(event));
    root.addEventListener("click", (event) => this.click(event));
    document.addEventListener("keydown", (event) => this.key(event));
    const last = this.pages().at(-1);
    // Whoever opens a log that grows wants to see it grow.
    if (last?.dataset.last && last.dataset.grows && this.follow) {
      this.follow.checked = true;
      this.begin();
    }
    this.bottom();
    this.place();
    this.fill();
  }

  /** A search looks at a part of a long log at a time: goes through the others until there is something to see. */
  async fill() {
    for (let tried = 0; tried < PARTS_MAX && this.scroll.scrollHeight <= this.scroll.clientHeight; tried += 1) {
      const first = this.pages()[0];
      const last = this.pages().at(-1);
      if (last && !last.dataset.last) {
        await this.append(last);
        const next = this.pages().at(-1);
        if (next && next !== last) fold(last, next, ["from", "first"]);
      } else if (first && !first.dataset.first) {
        await this.prepend(first);
        const before = this.pages()[0];
        if (before && before !== first) fold(first, before, ["next", "last"]);
      } else return;
      if (this.pages().some((it) => it.childElementCount > 0)) document.getElementById("log-none")?.remove();
    }
  }

  /** @returns {HTMLElement[]} */
  pages() {
    return /** @type {HTMLElement[]} */ ([...this.scroll.querySelectorAll(".log-page")]);
  }

  /** Fetches a page.
   * @param {string} place what is added to the address
   * @returns {Promise<HTMLElement | null>}
   */
  async fetch(place) {
    const answer = await fetch(`${this.lines}${place}`, { headers: { accept: "text/html" } });
    if (!answer.ok) return null;
    const made = document.createElement("template");
    made.innerHTML = await answer.text(); // rows of our own server, escaped there
    const page = made.content.querySelector(".log-page");
    return page instanceof HTMLElement ? page : null;
  }

  /** Fetches what comes next, where somebody comes near to an end. */
  async look() {
    this.place();
    const { scrollTop, clientHeight, scrollHeight } = this.scroll;
    const atEnd = scrollTop + clientHeight > scrollHeight - 4;
    if (this.stream && !atEnd && this.scroll.dataset.moved) {
      if (this.follow) this.follow.checked = false;
      this.end();
    }
    if (this.busy) return;
    this.busy = true;
    try {
      const pages = this.pages();
      const first = pages[0];
      const last = pages.at(-1);
      if (last && !last.dataset.last && scrollTop + clientHeight > scrollHeight - NEAR_PX) await this.append(last);
      else if (first && !first.dataset.first && scrollTop < NEAR_PX) await this.prepend(first);
    } finally {
      this.busy = false;
    }
  }

  /** @param {HTMLElement} last */
  async append(last) {
    const page = await this.fetch(`&at=${last.dataset.next}`);
    if (!page) return;
    last.after(page);
    this.dropFirst();
  }

  /** @param {HTMLElement} first */
  async prepend(first) {
    const page = await this.fetch(`&back=1&at=${first.dataset.from}`);
    if (!page) return;
    const before = this.scroll.scrollHeight;
    first.before(page);
    this.scroll.scrollTop += this.scroll.scrollHeight - before; // what is read stays where it is
    const pages = this.pages();
    for (const old of pages.slice(PAGES_MAX)) old.remove();
  }

  dropFirst() {
    const pages = this.pages();
    for (const old of pages.slice(0, Math.max(0, pages.length - PAGES_MAX))) {
      const height = old.getBoundingClientRect().height;
      old.remove();
      this.scroll.scrollTop -= height;
    }
  }

  /** Shows another place alone.
   * @param {string} place
   * @param {boolean} atEnd
   */
  async show(place, atEnd) {
    const page = await this.fetch(place);
    if (!page) return;
    this.scroll.replaceChildren(page);
    this.scroll.scrollTop = atEnd ? this.scroll.scrollHeight : 0;
    await this.look();
  }

  jump() {
    const total = Number(this.pages()[0]?.dataset.total ?? 0);
    const part = Number(this.range?.value ?? 0) / 1000;
    if (part >= 1) this.show("&back=1", true);
    else this.show(`&at=${Math.floor(total * part)}`, false);
  }

  /** Follows what is printed. */
  begin() {
    this.end();
    this.show("&back=1", true).then(() => {
      if (!this.follow?.checked) return;
      const at = this.pages().at(-1)?.dataset.next ?? "0";
      const stream = new EventSource(`${this.streamUrl}&offset=${at}`);
      this.stream = stream;
      stream.onmessage = (event) => this.grow(JSON.parse(event.data));
      stream.addEventListener("end", () => {
        if (this.follow) this.follow.checked = false;
        this.end();
      });
    });
  }

  end() {
    this.stream?.close();
    this.stream = null;
  }

  /** @param {{ next: number, total_bytes: number, html: string }} news */
  grow(news) {
    let last = this.pages().at(-1);
    if (!last || news.next <= Number(last.dataset.next)) return; // seen already
    document.getElementById("log-none")?.remove();
    if (last.childElementCount > ROWS_MAX) {
      const page = document.createElement("ol");
      page.className = "log-page";
      Object.assign(page.dataset, { from: last.dataset.next, first: "", last: "1", grows: "1" });
      last.dataset.last = "";
      last.after(page);
      last = page;
      this.dropFirst();
    }
    last.insertAdjacentHTML("beforeend", news.html); // rows of our own server, escaped there
    last.dataset.next = String(news.next);
    for (const page of this.pages()) page.dataset.total = String(news.total_bytes);
    this.bottom();
  }

  bottom() {
    delete this.scroll.dataset.moved;
    this.scroll.scrollTop = this.scroll.scrollHeight;
    requestAnimationFrame(() => (this.scroll.dataset.moved = "1"));
  }

  /** Moves the range to where we are. */
  place() {
    if (!this.range || document.activeElement === this.range) return;
    const top = this.scroll.getBoundingClientRect().top;
    const page = this.pages().find((it) => it.getBoundingClientRect().bottom > top) ?? this.pages().at(-1);
    const total = Number(page?.dataset.total ?? 0);
    if (page && total > 0) this.range.value = String(Math.round((Number(page.dataset.next) / total) * 1000));
  }

  /** Links to places, without another page.
   * @param {MouseEvent} event
   */
  click(event) {
    const link = event.target instanceof Element ? event.target.closest("a[data-log]") : null;
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const query = new URL(link.href).searchParams;
    if (link.dataset.log?.endsWith("error") && new URL(this.lines, location.href).searchParams.has("level")) return;
    event.preventDefault();
    if (this.follow) this.follow.checked = false;
    this.end();
    const at = query.get("at");
    this.show(`${at === null ? "" : `&at=${at}`}${query.get("back") ? "&back=1" : ""}`, query.get("back") === "1");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.target !== this.scroll || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Home") this.show("&at=0", false);
    else if (event.key === "End") this.show("&back=1", true);
    else return;
    event.preventDefault();
  }
}

/** Puts a page without a line into the one beside it: it would push others out.
 * @param {HTMLElement} empty
 * @param {HTMLElement} beside
 * @param {string[]} names what the other one takes over
 */
function fold(empty, beside, names) {
  if (empty.childElementCount > 0) return;
  for (const name of names) beside.dataset[name] = empty.dataset[name];
  empty.remove();
}

const root = document.getElementById("log");
const scroll = document.getElementById("log-scroll");
if (root && scroll) new LogView(root, scroll);

// Choosing another output, level or form shows it at once.
const form = document.getElementById("log-form");
form?.addEventListener("change", (event) => {
  if (form instanceof HTMLFormElement && event.target instanceof Element && event.target.matches("select")) form.requestSubmit();
});

// What is open here is kept when the page is drawn again, so the server need not make it again.
document.addEventListener("htmx:configRequest", (event) => {
  const detail = /** @type {CustomEvent} */ (event).detail;
  const kept = document.getElementById("log") ?? document.getElementById("diff");
  if (kept && event.target instanceof Element && event.target.id === "main") detail.parameters.bare = "1";
});

export {}; // a module, with names of its own
