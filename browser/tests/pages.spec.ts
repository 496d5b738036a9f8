// Every page, as people see it: on a desk and on a phone, light, dark and with high contrast. Nothing breaks, nothing scrolls
// sideways, and axe has no complaint. The pictures are left behind, to be looked at.
import fs from "node:fs";
import path from "node:path";
import { type BrowserContextOptions, expect, test } from "@playwright/test";
import { blank, enter, violations } from "./browser";
import { lively } from "./lively";
import type { Scratch } from "./scratch";

const OUT = path.join(process.env.LANDFALL_WEB_OUT ?? "out", "pages");

/** The tabs of a task. */
const TABS = ["", "/log", "/diff", "/checks", "/gates", "/target", "/attempts", "/cost", "/certificate", "/history"];

/** The pages that the navigation does not lead to, and views of those that it does. T4 has landed after it was sent back. */
const MORE = [
  ...TABS.map((tab) => `/tasks/T4${tab}`),
  "/tasks/T5/diff?view=split",
  "/tasks/T6",
  "/tasks/T7/log",
  "/tasks/T11",
  "/inbox?kind=review",
  "/backlog?view=order",
  "/sprints",
  "/runs/1",
  "/flows/loop",
  "/doctor",
  "/api",
  "/sessions",
  "/problems",
  "/help",
  "/nowhere",
];

const LOOKS: Record<string, BrowserContextOptions & { only?: RegExp }> = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  "phone-light": { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true },
  "phone-dark": { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true },
  contrast: { contrast: "more", only: /^\/$|^\/tasks\/T[46](\/diff)?$/ },
};

let scratch: Scratch;
let kept: string;

test.beforeAll(async ({ browser }) => {
  const made = await lively();
  scratch = made.scratch;
  const { context, page, watch } = await enter(browser, made.link);
  await page.locator("#act-start").getByRole("button").click();
  await expect(page.locator("#column-needs-you .card").first()).toBeVisible({ timeout: 30_000 });
  await expect(page.locator("#card-T5")).toContainText(/review/i, { timeout: 30_000 });
  await expect(page.locator("#column-working .card")).toHaveCount(2, { timeout: 30_000 });
  watch.clean();
  kept = path.join(scratch.folder, "session.json");
  await context.storageState({ path: kept });
  await context.close();
});

test.afterAll(async () => {
  await scratch?.remove();
});

for (const [look, { only, ...options }] of Object.entries(LOOKS)) {
  test(`every page is whole: ${look}`, async ({ browser }) => {
    test.setTimeout(240_000);
    const { context, watch } = await blank(browser, new URL(scratch.url).host, { ...options, storageState: kept });
    watch.expected.push(/\/nowhere.*404/);
    const page = await context.newPage();
    await page.goto("/");
    const links = await page.locator(".rail a[href]").evaluateAll((all) => all.map((it) => it.getAttribute("href") ?? ""));
    expect(links.length).toBeGreaterThan(10);
    const folder = path.join(OUT, look);
    fs.mkdirSync(folder, { recursive: true });
    const wrong: string[] = [];
    for (const at of [...links, ...MORE].filter((it) => !only || only.test(it))) {
      const answer = await page.goto(at);
      const status = answer?.status() ?? 0;
      if (status !== (at === "/nowhere" ? 404 : 200)) wrong.push(`${at}: ${status}`);
      if ((await page.locator("h1").count()) !== 1) wrong.push(`${at}: not one headline`);
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (sideways > 0) wrong.push(`${at}: ${sideways} px too wide: ${await page.evaluate(widest)}`);
      for (const it of await violations(page)) wrong.push(`${at}: ${it}`);
      const name = at === "/" ? "now" : at.slice(1).replace(/[^A-Za-z0-9]+/g, "-");
      await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
    }
    expect(wrong).toEqual([]);
    watch.clean();
    await context.close();
  });
}

test("every page of the program is among them", async () => {
  const source = fs.readFileSync(path.join(__dirname, "../../crates/landfall-server/src/pages/mod.rs"), "utf8");
  const table = source.slice(source.indexOf("const PAGES"), source.indexOf("const ANSWERS"));
  const paths = [...table.matchAll(/path: "([^"]+)", nav: None/g)].map((it) => it[1]!);
  expect(paths.length).toBeGreaterThan(8);
  const seen = MORE.map((it) => it.replace(/\?.*/, ""));
  const missing = paths.filter((it) => !seen.some((at) => new RegExp(`^${it.replace(/\{[a-z]+\}/g, "[^/]+")}$`).test(at)));
  expect(missing).toEqual([]);
});

/** What sticks out of the page, for whoever has to mend it. */
function widest(): string {
  const width = document.documentElement.clientWidth;
  const out = [...document.querySelectorAll("body *")].filter((it) => it.getBoundingClientRect().right > width + 1 && !it.closest(".scroll-x"));
  return out.slice(0, 3).map((it) => `${it.tagName.toLowerCase()}#${it.id}.${it.className}`).join(", ");
}
