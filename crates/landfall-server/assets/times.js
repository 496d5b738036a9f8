// Moments on pages: how long ago, kept fresh; how long still, counted down; the moment itself in the time of this browser.

/** How far a moment is from now, in one unit: the same words as the server's.
 * @param {number} now
 * @param {number} at
 */
export function away(now, at) {
  const seconds = Math.floor(Math.abs(now - at) / 1000);
  if (seconds < 5) return "now";
  const far =
    seconds < 60 ? `${seconds} s`
    : seconds < 3600 ? `${Math.floor(seconds / 60)} min`
    : seconds < 86400 ? `${Math.floor(seconds / 3600)} h`
    : `${Math.floor(seconds / 86400)} d`;
  return at > now ? `in ${far}` : `${far} ago`;
}

/** A length of time in its two largest units, with tenths below ten seconds: the same as the server's.
 * @param {number} ms
 */
export function length(ms) {
  const tenths = Math.floor((ms % 1000) / 100);
  if (ms > 0 && ms < 10_000 && tenths > 0) return `${Math.floor(ms / 1000)}.${tenths}s`;
  const seconds = Math.max(0, Math.floor(ms / 1000));
  /** @type {[number, string][]} */
  const units = [[Math.floor(seconds / 86400), "d"], [Math.floor(seconds / 3600) % 24, "h"], [Math.floor(seconds / 60) % 60, "m"], [seconds % 60, "s"]];
  const first = units.findIndex(([count]) => count > 0);
  if (first < 0) return "0s";
  return units.slice(first, first + 2).filter(([count]) => count > 0).map(([count, unit]) => `${count}${unit}`).join(" ");
}

/** A large number, short: the same as the server's.
 * @param {number} number
 */
export function short(number) {
  const tenths = (/** @type {number} */ unit) => String(Math.floor((number * 10) / unit) / 10);
  if (number < 1e3) return String(number);
  if (number < 1e6) return `${tenths(1e3)}k`;
  return number < 1e9 ? `${tenths(1e6)}M` : `${tenths(1e9)}G`;
}

/** Money: the same as the server's.
 * @param {number} dollars
 */
export function usd(dollars) {
  if (dollars <= 0 || dollars >= 0.01) return `$${dollars.toFixed(2)}`;
  return `$${Math.max(dollars, 0.000001).toFixed(6).replace(/0+$/, "")}`;
}

/** Writes every moment of the page anew. */
export function freshen() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-ago], time[data-until]")) {
    if (!(time instanceof HTMLElement)) continue;
    const { ago, until } = time.dataset;
    const at = Number(ago ?? until);
    const text = ago === undefined ? (at > now ? length(Math.floor((at - now) / 1000) * 1000) : "any moment now") : away(now, at);
    if (time.textContent !== text) time.textContent = text;
    const title = new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    if (time.title !== title) time.title = title;
  }
}

/** Keeps moments fresh while somebody looks. */
export function keepTimes() {
  freshen();
  window.setInterval(() => {
    if (!document.hidden) freshen();
  }, 1000);
  document.addEventListener("htmx:afterSettle", freshen);
  document.addEventListener("visibilitychange", freshen);
}
