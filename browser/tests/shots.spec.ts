// Not a test: contact sheets of the pages, one for each width and theme, and a file with the figures that a person looks for.
// `cargo xtask pages --shots` runs it and says where the sheets are.
import fs from "node:fs";
import path from "node:path";
import { type BrowserContextOptions, type Page, expect, test } from "@playwright/test";
import { blank, enter, violations } from "./browser";
import { lively } from "./lively";
import type { Scratch } from "./scratch";

const OUT = path.join(process.env.LANDFALL_WEB_OUT ?? "out", "shots");

/** The pages of the sheets. T4 has landed after it was sent back, T5 waits for a review, T6 is being worked on. */
const PAGES = [
  "/", "/inbox", "/inbox?task=T5", "/backlog", "/queue", "/sprint", "/graph", "/discoveries", "/stats", "/fleet", "/runs", "/runs/1", "/flows", "/settings",
  "/tasks/T5", "/tasks/T5/diff", "/tasks/T4", "/tasks/T4/log", "/tasks/T4/checks", "/tasks/T4/attempts", "/tasks/T4/certificate", "/tasks/T6", "/tasks/T6/log", "/tasks/T10", "/tasks/T10/log", "/tasks/T10#decide",
];

const LOOKS: Record<string, BrowserContextOptions> = {
  "1440-light": { colorScheme: "light", viewport: { width: 1440, height: 900 } },
  "1440-dark": { colorScheme: "dark", viewport: { width: 1440, height: 900 } },
  "390-light": { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true },
  "390-dark": { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true },
};

let scratch: Scratch;

test.afterAll(async () => {
  await scratch?.remove();
});

test("contact sheets", async ({ browser }) => {
  test.setTimeout(20 * 60_000);
  const made = await lively();
  scratch = made.scratch;
  const { context, page } = await enter(browser, made.link);
  await page.locator("#act-start").getByRole("button").click();
  await expect(page.locator("#card-T5")).toContainText(/review/i, { timeout: 60_000 });
  await expect(page.locator("#column-working .card")).toHaveCount(2, { timeout: 60_000 });
  const storageState = await context.storageState();
  await context.close();
  const figures: Record<string, unknown> = {};
  for (const [look, options] of Object.entries(LOOKS)) {
    const { context } = await blank(browser, new URL(scratch.url).host, { ...options, storageState });
    const page = await context.newPage();
    const folder = path.join(OUT, look);
    fs.mkdirSync(folder, { recursive: true });
    const names: string[] = [];
    const of: Record<string, unknown> = { firstVisit: await visit(page, "/"), secondVisit: await visit(page, "/") };
    for (const at of PAGES) {
      await page.goto("about:blank");
      await page.goto(at);
      await page.waitForTimeout(250);
      const name = at === "/" ? "now" : at.slice(1).replace(/[^A-Za-z0-9]+/g, "-");
      await page.screenshot({ path: path.join(folder, `${name}.png`) });
      names.push(name);
      const found = await violations(page);
      of[at] = { ...(await page.evaluate(measure)), ...(found.length > 0 ? { axe: found } : {}) };
    }
    figures[look] = of;
    await sheet(page, folder, look, names);
    await context.close();
  }
  fs.writeFileSync(path.join(OUT, "figures.json"), `${JSON.stringify(figures, null, 2)}\n`);
});

/** How much a visit of a page loads; the stream of events has no end and is not counted. */
async function visit(page: Page, at: string) {
  const tools = await page.context().newCDPSession(page);
  await tools.send("Network.enable");
  let bytes = 0;
  const urls = new Map<string, string>();
  const asked: string[] = [];
  tools.on("Network.requestWillBeSent", (event) => {
    urls.set(event.requestId, event.request.url);
    if (!event.request.url.includes("/api/v1/events")) asked.push(new URL(event.request.url).pathname);
  });
  tools.on("Network.requestServedFromCache", (event) => {
    const place = asked.indexOf(new URL(urls.get(event.requestId) ?? "http://none/").pathname);
    if (place >= 0) asked.splice(place, 1);
  });
  tools.on("Network.loadingFinished", (event) => {
    if (!urls.get(event.requestId)?.includes("/api/v1/events")) bytes += event.encodedDataLength;
  });
  await page.goto(at);
  await page.waitForTimeout(500);
  await tools.detach();
  return { requests: asked.length, bytes };
}

/** Where things begin, and how many are on the first screen. */
function measure() {
  const top = (selector: string) => {
    const found = document.querySelector(selector);
    return found ? Math.round(found.getBoundingClientRect().top) : undefined;
  };
  const cards = [...document.querySelectorAll(".board .card")].map((it) => it.getBoundingClientRect());
  const whole = cards.filter((it) => it.top >= 0 && it.bottom <= innerHeight && it.right <= innerWidth);
  const sideways = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  return {
    firstCard: top(".board .card"),
    cards: cards.length > 0 ? whole.length : undefined,
    tabs: top("main > .tabs"),
    diff: top(".diff-file"),
    log: top("#log-scroll"),
    decision: top("#decide"),
    sideways: sideways > 0 ? sideways : undefined,
  };
}

/** All pictures of a look on one. */
async function sheet(page: Page, folder: string, look: string, names: string[]) {
  const wide = look.startsWith("1440");
  const figures = names.map((name) => {
    const data = fs.readFileSync(path.join(folder, `${name}.png`)).toString("base64");
    return `<figure><img src="data:image/png;base64,${data}"><figcaption>${name}</figcaption></figure>`;
  });
  const width = wide ? 480 : 195;
  const style = `body{margin:12px;background:#777;font:14px sans-serif;color:#fff;display:flex;flex-wrap:wrap;gap:12px}figure{margin:0}img{width:${width}px;display:block}`;
  await page.goto("about:blank");
  await page.setViewportSize({ width: wide ? 1500 : 1680, height: 900 });
  await page.setContent(`<style>${style}</style>${figures.join("")}`);
  await page.screenshot({ path: path.join(OUT, `${look}.png`), fullPage: true });
}
