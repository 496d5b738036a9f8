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
const WATCH = `{
  const slow = [];
  const note = (entries) => slow.push(...entries.map((it) => Math.round(it.duration)));
  const observer = new PerformanceObserver((list) => note(list.getEntries()));
  observer.observe({ type: "longtask", buffered: true });
  globalThis.slowTasks = () => (note(observer.takeRecords()), slow);
}`;

/** The long tasks so far. A task is told of when it is over and its picture is drawn, so two pictures are waited for. */
function slowTasks(page: Page): Promise<number[]> {
  return page.evaluate(() => new Promise<number[]>((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done((globalThis as any).slowTasks()))))));
}

/** Draws the page again as if something had happened, and waits until it is drawn. */
async function draw(page: Page) {
  await page.evaluate(
    () =>
      new Promise<void>((done) => {
        document.addEventListener("htmx:afterSettle", () => done(), { once: true });
        (globalThis as any).htmx.trigger(document.body, "changed");
      }),
  );
}

/** Does something several times and takes the calmest: what else the machine does is not the page's fault, and never makes it faster. */
async function calm(page: Page, what: string, doIt: () => Promise<void>) {
  let longest = Infinity;
  for (let round = 0; round < ROUNDS_MAX && longest >= LONG_TASK_MS; round += 1) {
    await doIt();
    longest = Math.min(longest, Math.max(0, ...(await slowTasks(page))));
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

test("a page that does not answer for a while is seen", async ({ browser }) => {
  const { context, page } = await enter(browser, scratch.json("pair").links[0]);
  await context.addInitScript(WATCH);
  await page.goto("/");
  // In a task of the page: what a debugger runs in it is not counted.
  await page.evaluate(
    (ms) =>
      new Promise<void>((done) =>
        setTimeout(() => {
          const until = performance.now() + ms;
          while (performance.now() < until);
          done();
        }),
      ),
    LONG_TASK_MS + 50,
  );
  expect(Math.max(0, ...(await slowTasks(page)))).toBeGreaterThanOrEqual(LONG_TASK_MS);
  await context.close();
});

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
      await draw(page);
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
    await page.locator("#log-search").press("Enter");
    await expect(page.locator("#log-scroll")).toContainText(`line ${LINES / 2}:`);
  });
  watch.clean();
  await context.close();
});
