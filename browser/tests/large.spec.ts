// Ten thousand tasks and a log of two hundred thousand lines: pages come soon, scroll without a stutter, and stay small.
import { type Page, expect, test } from "@playwright/test";
import { enter, output } from "./browser";
import { Scratch, settings } from "./scratch";

const TASKS = 10_000;
const LINES = 200_000;
const LONG_TASK_MS = 200;
const NODES_MAX = 12_000;
const ROUNDS_MAX = 4;

let scratch: Scratch;
let link: string;

test.beforeAll(async () => {
  test.setTimeout(180_000);
  scratch = new Scratch("large-shop", settings(`[agent.printer]\nkind = "command"\nrun = "sh print.sh"\n`), { "print.sh": `seq -f 'line %.0f: a chatty agent says what it is about to do' 1 ${LINES}\necho '<landfall>COMPLETE</landfall>'\n` });
  scratch.landfall("add", "Print a lot", "--agent", "printer", "--priority", "0");
  scratch.try("run", "--non-interactive");
  const head = (at: number) => `+++\ntitle = "Task number ${at} of a long list"\ntags = ["area-${at % 20}"]\n${at > 3 && at % 7 === 0 ? `needs = ["t${at - 3}"]\n` : ""}id = "t${at}"\n+++\n\nSomething to do.\n\n`;
  scratch.add(Array.from({ length: TASKS }, (_, at) => head(at + 1)).join(""));
  link = await scratch.serve();
});

test.afterAll(async () => {
  await scratch?.remove();
});

/** Counts what keeps the page from answering, from its first moment on. */
const WATCH = `globalThis.slow = []; new PerformanceObserver((list) => { for (const it of list.getEntries()) globalThis.slow.push(Math.round(it.duration)); }).observe({ type: "longtask", buffered: true });`;

/** Does something several times and takes the calmest: what else the machine does is not the page's fault, and never makes it faster. */
async function calm(page: Page, what: string, doIt: () => Promise<void>) {
  let longest = Infinity;
  for (let round = 0; round < ROUNDS_MAX && longest >= LONG_TASK_MS; round += 1) {
    await doIt();
    const slow: number[] = await page.evaluate(() => (globalThis as any).slow);
    longest = Math.min(longest, Math.max(0, ...slow));
  }
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  console.log(`    ${what}: longest task ${longest} ms, ${nodes} elements`);
  expect(longest, `${what}: the longest task of the page in ms`).toBeLessThan(LONG_TASK_MS);
  expect(nodes, `${what}: elements`).toBeLessThan(NODES_MAX);
}

async function scroll(page: Page, selector: string | null) {
  for (let step = 0; step < 20; step += 1) {
    await page.evaluate(
      ([selector, down]) => {
        const at = selector ? document.querySelector(selector as string) : document.scrollingElement;
        at?.scrollBy(0, down as number);
        return new Promise((done) => requestAnimationFrame(() => done(null)));
      },
      [selector, 600] as const,
    );
  }
}

test("ten thousand tasks do not stutter", async ({ browser }) => {
  const { context, page, watch } = await enter(browser, link);
  await context.addInitScript(WATCH);
  for (const at of ["/", "/backlog", "/backlog?status=all&text=number+77", "/backlog?view=order", "/graph", "/stats", "/inbox", "/queue"]) {
    await calm(page, at, async () => {
      const began = Date.now();
      await page.goto(at);
      await expect(page.locator("h1")).toBeVisible();
      expect(Date.now() - began, `${at} is there`).toBeLessThan(10_000);
      await scroll(page, null);
      // The page is drawn again as if something had happened.
      const drawn = page.waitForResponse((it) => it.request().headers()["hx-request"] === "true");
      await page.evaluate(() => (globalThis as any).htmx.trigger(document.body, "changed"));
      await drawn;
      await page.waitForTimeout(300);
    });
  }
  watch.clean();
  await context.close();
});

test("two hundred thousand lines are scrolled", async ({ browser }) => {
  const { context, page, watch } = await enter(browser, scratch.json("pair").links[0]);
  await context.addInitScript(WATCH);
  await calm(page, "the log", async () => {
    await output(page, "T1", /iteration 1/);
    await expect(page.locator("#log-scroll")).toContainText(`line ${LINES}`);
    await page.locator("a[data-log=start]").click();
    await expect(page.locator("#log-scroll")).toContainText("line 1:");
    for (let round = 0; round < 10; round += 1) {
      await scroll(page, "#log-scroll");
      await page.waitForTimeout(50);
    }
    await expect(page.locator("#log-scroll")).not.toContainText("line 1:");
    await page.locator("a[data-log=end]").click();
    await expect(page.locator("#log-scroll")).toContainText(`line ${LINES}`);
    await page.locator("#log-search").fill(`line ${LINES / 2}:`);
    await page.locator("#log-form button[type=submit]").click();
    await expect(page.locator("#log-scroll")).toContainText(`line ${LINES / 2}:`);
  });
  watch.clean();
  await context.close();
});
