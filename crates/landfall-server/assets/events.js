// The stream of events: news of the journal draw the page again, what agents are at is written onto their cards.
// When the connection is lost the page says so, tries again every three seconds, and is drawn anew once it is back.
import { length, short, usd } from "./times.js";

const AGAIN_MS = 3000;
const CALM_MS = 250; // news come in bursts: the page is drawn once for all of them
const CALM_MAX_MS = 1000; // but not later than this
const SILENT_MS = 45000; // the server says something every 15 seconds

const HIDDEN_MS = 20000; // browsers give all tabs of a site six connections: one that nobody looks at gives its own back

/** The last fact that was heard of. */
let last = "";
let lost = false;
let first = 0;
let timer = 0;
let missed = false;
/** Ends the stream, if there is one. @type {(() => void) | null} */
let close = null;

/** Draws the page again soon. */
export function changed() {
  if (document.hidden && !isTold()) {
    missed = true;
    return;
  }
  const now = Date.now();
  if (!first) first = now;
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    first = 0;
    window.htmx?.trigger(document.body, "changed");
  }, Math.max(0, Math.min(CALM_MS, first + CALM_MAX_MS - now)));
}

/** Whether somebody is told by the browser, so that a hidden page must go on. */
function isTold() {
  return "Notification" in window && Notification.permission === "granted";
}

/** Follows the stream for as long as the page is open. */
export function followEvents() {
  last = document.getElementById("state")?.dataset.seq ?? "";
  let leaving = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) {
      leaving = window.setTimeout(() => {
        if (isTold()) return;
        close?.();
        close = null;
        missed = true;
      }, HIDDEN_MS);
      return;
    }
    if (!close) open();
    if (!missed) return;
    missed = false;
    changed();
  });
  window.addEventListener("pagehide", () => {
    close?.();
    close = null;
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted || close) return;
    open();
    changed();
  });
  open();
}

function open() {
  // A new stream goes on where the last one ended; while the browser reconnects by itself, its Last-Event-ID says the same.
  const stream = new EventSource(`/api/v1/events${last ? `?after=${encodeURIComponent(last)}` : ""}`);
  let heard = Date.now();
  let retry = 0;
  const end = () => {
    stream.close();
    clearInterval(watch);
    clearTimeout(retry);
  };
  const again = () => {
    end();
    say(true);
    retry = window.setTimeout(open, AGAIN_MS);
  };
  const watch = window.setInterval(() => {
    if (Date.now() - heard > SILENT_MS && !document.hidden) again();
  }, 5000);
  close = end;
  stream.onopen = () => {
    heard = Date.now();
    if (!lost) return;
    say(false);
    changed();
  };
  stream.onerror = again;
  stream.onmessage = (event) => {
    heard = Date.now();
    if (event.lastEventId) last = event.lastEventId;
    document.dispatchEvent(new CustomEvent("landfall:fact", { detail: read(event.data) }));
    changed();
  };
  stream.addEventListener("live", (event) => {
    heard = Date.now();
    const lines = read(event.data);
    document.dispatchEvent(new CustomEvent("landfall:live", { detail: lines }));
    if (Array.isArray(lines)) for (const line of lines) live(line);
  });
  stream.addEventListener("alive", () => {
    heard = Date.now();
  });
}

/** @param {string} text */
function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a newer server says something else
  }
}

/** Shows whether there is a connection.
 * @param {boolean} is
 */
function say(is) {
  lost = is;
  const place = document.getElementById("link-state");
  if (!place) return;
  place.hidden = !is;
  place.textContent = is ? "⚠ Connection lost, trying again" : "";
  document.documentElement.classList.toggle("offline", is);
}

/** Writes what an agent is at onto its card.
 * @param {{task: string, doing?: string, iteration?: number, elapsed_ms?: number, tokens?: number, cost_usd?: number, agent?: {words?: string, class?: string}}} line
 */
function live(line) {
  const card = document.getElementById(`card-${line.task}`);
  if (!card) return;
  /** @type {[string, string | undefined][]} */
  const facts = [
    ["doing", line.agent?.class ?? line.doing],
    ["words", line.agent?.words],
    ["iteration", line.iteration?.toString()],
    ["elapsed", line.elapsed_ms === undefined ? undefined : length(line.elapsed_ms)],
    ["tokens", line.tokens === undefined ? undefined : short(line.tokens)],
    ["cost", line.cost_usd === undefined ? undefined : usd(line.cost_usd)],
  ];
  for (const [name, text] of facts) {
    const place = card.querySelector(`[data-live="${name}"]`);
    if (place && text !== undefined && place.textContent !== text) place.textContent = text;
  }
}
