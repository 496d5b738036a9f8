// The diff of a task: comments on lines are collected here and sent as one message, and the last look is remembered.

/** @typedef {{ file: string, line: string, code: string, text: string }} Comment */

/** A number that is another one for another text, as far as a person meets it.
 * @param {string} text
 */
function fingerprint(text) {
  let hash = 5381;
  for (let at = 0; at < text.length; at += 1) hash = ((hash * 33) ^ text.charCodeAt(at)) >>> 0;
  return `${text.length}-${hash}`;
}

class DiffView {
  /** @param {HTMLElement} root @param {HTMLFormElement} form */
  constructor(root, form) {
    this.root = root;
    this.form = form;
    this.task = root.dataset.task ?? "";
    this.kept = `comments:${this.task}`;
    /** @type {HTMLElement | null} */
    this.row = null;
    document.getElementById("diff-how")?.removeAttribute("hidden");
    // They were sent: what was collected is done with.
    if (new URL(location.href).searchParams.has("sent")) localStorage.removeItem(this.kept);
    this.comments = this.read();
    this.draw();
    root.addEventListener("click", (event) => this.click(event));
    root.addEventListener("mouseover", (event) => {
      const row = event.target instanceof Element ? event.target.closest("tr[data-line]") : null;
      if (row instanceof HTMLElement) this.row = row;
    });
    document.addEventListener("keydown", (event) => this.key(event));
    this.markViewed();
    this.look();
    document.addEventListener("htmx:afterSettle", () => this.compare());
  }

  /** Lets a person mark files as viewed: they fold, and stay so until their changes are others. */
  markViewed() {
    const name = `viewed:${this.task}`;
    /** @type {Record<string, string>} */
    let viewed = {};
    try {
      viewed = JSON.parse(localStorage.getItem(name) ?? "{}") ?? {};
    } catch {
      // somebody else wrote it
    }
    const progress = document.getElementById("diff-viewed");
    const files = [...this.root.querySelectorAll("details.diff-file[data-file]")].filter((it) => it instanceof HTMLDetailsElement);
    const count = () => {
      const done = files.filter((it) => it.classList.contains("viewed")).length;
      if (progress) progress.textContent = files.length > 1 ? `${done} of ${files.length} viewed` : "";
    };
    for (const file of files) {
      const path = file.dataset.file ?? "";
      const print = fingerprint(file.querySelector("tbody")?.textContent ?? "");
      const label = document.createElement("label");
      label.className = "inline small diff-mark";
      const box = document.createElement("input");
      box.type = "checkbox";
      label.append(box, "Viewed");
      const show = () => {
        file.classList.toggle("viewed", box.checked);
        if (box.checked) file.open = false;
        count();
      };
      box.addEventListener("change", () => {
        if (box.checked) viewed[path] = print;
        else {
          delete viewed[path];
          file.open = true;
        }
        localStorage.setItem(name, JSON.stringify(viewed));
        show();
      });
      box.checked = viewed[path] === print;
      // Beside the file and not in its summary, which is a button itself.
      file.before(label);
      show();
    }
  }

  /** Says so when the work has moved on. */
  compare() {
    const notice = document.getElementById("diff-stale");
    const [now, seen] = [notice?.dataset.now, this.root.dataset.seen];
    if (notice) notice.hidden = !now || !seen || now === seen;
  }

  /** @returns {Comment[]} */
  read() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.kept) ?? "[]");
      return Array.isArray(kept) ? kept.filter((it) => typeof it?.text === "string" && typeof it?.file === "string") : [];
    } catch {
      return []; // somebody else wrote it
    }
  }

  keep() {
    if (this.comments.length) localStorage.setItem(this.kept, JSON.stringify(this.comments));
    else localStorage.removeItem(this.kept);
    this.draw();
  }

  /** Remembers the work as it is now, and offers what came since the last time. */
  look() {
    const now = this.root.dataset.tip ?? "";
    const name = `look:${this.task}`;
    const last = localStorage.getItem(name);
    const link = document.getElementById("diff-look");
    if (last && last !== now && /^[0-9a-f]{7,64}$/.test(last) && link instanceof HTMLAnchorElement) {
      const to = new URL(location.href);
      to.searchParams.set("since", last);
      to.searchParams.delete("sent");
      link.href = to.toString();
      link.hidden = false;
    }
    if (now && !new URL(location.href).searchParams.has("since")) localStorage.setItem(name, now);
  }

  /** @param {MouseEvent} event */
  click(event) {
    if (!(event.target instanceof Element)) return;
    const row = event.target.closest("tr[data-line]");
    if (event.target.closest(".d-num") && row instanceof HTMLElement) this.open(row);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || !this.row?.isConnected) return;
    if (event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    this.open(this.row);
  }

  /** Opens a box below a line.
   * @param {HTMLElement} row
   */
  open(row) {
    const next = row.nextElementSibling;
    if (next?.classList.contains("d-say")) {
      next.querySelector("textarea")?.focus();
      return;
    }
    const file = row.closest("[data-file]");
    const cells = [...row.querySelectorAll(".d-code")];
    const cell = row.hasAttribute("data-old") ? cells[0] : cells.at(-1);
    const code = (cell?.textContent ?? "").replace(/^[-+ ]/, "");
    const box = document.createElement("tr");
    box.className = "d-say";
    const inner = document.createElement("td");
    inner.colSpan = row.children.length;
    const area = document.createElement("textarea");
    area.rows = 3;
    area.setAttribute("aria-label", `Comment on line ${row.dataset.line}`);
    const add = document.createElement("button");
    add.type = "button";
    add.className = "small primary";
    add.textContent = "Keep comment";
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "small";
    drop.textContent = "Discard";
    const buttons = document.createElement("div");
    buttons.className = "row";
    buttons.append(add, drop);
    inner.append(area, buttons);
    box.append(inner);
    row.after(box);
    area.focus();
    drop.addEventListener("click", () => box.remove());
    const save = () => {
      const text = area.value.trim();
      box.remove();
      if (!text) return;
      const line = `${row.dataset.line}${row.hasAttribute("data-old") ? " (removed)" : ""}`;
      this.comments.push({ file: (file instanceof HTMLElement && file.dataset.file) || "", line, code: code.slice(0, 300), text });
      this.keep();
    };
    add.addEventListener("click", save);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
      if (event.key === "Escape") box.remove();
    });
  }

  /** Shows what was collected, and puts it into the form. */
  draw() {
    const list = document.getElementById("comment-list");
    if (!list) return;
    list.replaceChildren();
    this.comments.forEach((comment, at) => {
      const part = document.createElement("div");
      part.className = "comment";
      const where = document.createElement("p");
      where.className = "small mono break";
      where.textContent = `${comment.file}, line ${comment.line}`;
      const code = document.createElement("pre");
      code.className = "code";
      code.textContent = comment.code;
      const text = document.createElement("p");
      text.className = "kept";
      text.textContent = comment.text;
      const drop = document.createElement("button");
      drop.type = "button";
      drop.className = "small";
      drop.textContent = "Remove";
      drop.addEventListener("click", () => {
        this.comments.splice(at, 1);
        this.keep();
      });
      part.append(where, code, text, drop);
      for (const [name, value] of [["file", comment.file], ["line", comment.line], ["code", comment.code], ["comment", comment.text]]) {
        const field = document.createElement("input");
        field.type = "hidden";
        field.name = name ?? "";
        field.value = value ?? "";
        part.append(field);
      }
      list.append(part);
    });
    const count = document.getElementById("comment-count");
    if (count) count.textContent = this.comments.length ? `${this.comments.length} on lines` : "";
  }
}

const root = document.getElementById("diff");
const form = document.getElementById("comments");
if (root && form instanceof HTMLFormElement) new DiffView(root, form);

export {}; // a module, with names of its own
