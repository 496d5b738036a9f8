// Without scripts: every page can be read, and every form that matters is posted and comes back.
import { type Page, expect, test } from "@playwright/test";
import { enter, output } from "./browser";
import { Scratch, settings, task } from "./scratch";

let scratch: Scratch;
let link: string;

const TASKS = [
  task({ title: "Ask first", priority: 1 }, `[[iteration]]\nsignal = "pending:with spaces or with dots?"\n[[iteration]]\nsignal = "complete"\n[[iteration.write]]\npath = "asked.txt"\ntext = "dots\\n"\n`),
  task({ title: "Look at it first", priority: 2, tags: ["careful"] }, `signal = "complete"\n[[write]]\npath = "looked.txt"\ntext = "x\\n"\n`),
  task({ title: "Print a lot", priority: 3, agent: "printer" }, `signal = "complete"`),
  task({ title: "Take a while", priority: 4 }, `[[iteration]]\nsignal = "complete"\n[[iteration.say]]\ntext = "slowly"\npause = "15s"\n`),
].join("");

test.beforeAll(async () => {
  scratch = new Scratch("quiet-shop", settings(`[agent.printer]\nkind = "command"\nrun = "sh print.sh"\n[run]\nslots = 4\n[review.tags]\ncareful = "per-task"\n`), { "print.sh": "seq -f 'line %g' 1 3000\necho '<landfall>COMPLETE</landfall>'\n" });
  scratch.add(TASKS);
  link = await scratch.serve();
});

test.afterAll(async () => {
  await scratch?.remove();
});

/** Loads the page again until it says something: nothing else moves it. */
async function says(page: Page, at: string, selector: string, text: RegExp) {
  await expect(async () => {
    await page.goto(at);
    await expect(page.locator(selector).first()).toContainText(text, { timeout: 300 });
  }).toPass({ timeout: 40_000, intervals: [300] });
}

test("a person without scripts reads and decides", async ({ browser }) => {
  const { context, page, watch } = await enter(browser, link, { javaScriptEnabled: false });

  // Adds a task.
  await page.goto("/backlog");
  await page.locator("#new-task > summary").click();
  await page.locator("#n-title").fill("Written by hand");
  await page.locator("#n-body").fill("Two lines\nof what is wanted.");
  await page.locator("#n-tags").fill("hand, later");
  await page.locator("#new-task-form input[name=draft]").check();
  await page.locator("#new-task-form button[type=submit]").click();
  await expect(page.locator("#toasts")).toContainText("T5");
  await expect(page.locator("#row-T5")).toContainText("Written by hand");

  // Filters.
  await page.locator("#f-text").fill("Written");
  await page.getByRole("button", { name: "Filter" }).click();
  await expect(page.locator("#tasks tbody tr")).toHaveCount(1);
  expect(page.url()).toContain("text=Written");

  // Edits it.
  await page.goto("/tasks/T5");
  if (!(await page.locator("#intervene").getAttribute("open")) && !(await page.locator("#edit-title").isVisible())) await page.locator("#intervene > summary").click();
  const fold = page.locator("details:has(> form #edit-title) > summary, details:has(#edit-title) > summary").last();
  if (!(await page.locator("#edit-title").isVisible())) await fold.click();
  await page.locator("#edit-title").fill("Written twice");
  await page.locator("form:has(#edit-title) button[type=submit]").click();
  await expect(page.locator("h1")).toContainText("Written twice");

  // Starts a run.
  await page.goto("/");
  await page.locator("#act-start button").click();
  await expect(page.locator("#drive")).toContainText(/running|working/i);

  // Answers.
  await says(page, "/inbox?task=T1", "#item", /with spaces or with dots/);
  await page.locator("#item .decision textarea").fill("with dots");
  await page.locator("#item .decision").getByRole("button", { name: "Answer" }).click();
  await says(page, "/tasks/T1", "#task-why", /landed/i);
  // What has landed is published to the branch of the user a moment later.
  await expect(() => expect(scratch.git("show", "main:asked.txt")).toBe("dots\n")).toPass({ timeout: 30_000 });

  // Approves.
  await says(page, "/inbox?task=T2", "#item", /Look at it first/);
  await page.locator("#item").getByRole("button", { name: /^Approve/ }).click();
  await says(page, "/tasks/T2", "#task-why", /landed/i);

  // Pages through the log.
  await says(page, "/tasks/T3", "#task-why", /landed|nothing/i);
  await output(page, "T3", /iteration 1/);
  await expect(page.locator("#log")).toContainText("line");
  await page.locator("a[data-log=start]").click();
  await expect(page.locator("#log-scroll")).toContainText("line 1");
  await page.locator("a[data-log=newer]").click();
  expect(page.url()).toContain("at=");
  await expect(page.locator("#log-scroll")).toContainText(/line \d\d\d/);
  await page.locator("#log-search").fill("line 2777");
  await page.locator("#log-form button[type=submit]").click();
  await expect(page.locator("#log-scroll")).toContainText("line 2777");

  // Stops the run.
  await page.goto("/");
  // Where no script asks whether it is meant, a box does.
  await page.locator("#act-stop input[type=checkbox]").first().check();
  await page.locator("#act-stop button").first().click();
  await expect(page.locator("#toasts")).not.toBeEmpty();
  await says(page, "/", "#drive", /not running/i);

  // Every page can be read.
  const links = await page.locator(".rail a[href]").evaluateAll((all) => all.map((it) => it.getAttribute("href") ?? ""));
  const tabs = ["", "/log", "/diff", "/checks", "/gates", "/target", "/attempts", "/cost", "/certificate", "/history"].map((tab) => `/tasks/T1${tab}`);
  for (const at of [...links, ...tabs, "/sprints", "/runs/1", "/flows/loop", "/doctor", "/sessions", "/problems", "/help", "/api"]) {
    const answer = await page.goto(at);
    expect(answer?.status(), at).toBe(200);
    await expect(page.locator("h1"), at).toHaveCount(1);
    expect((await page.locator("main").innerText()).length, at).toBeGreaterThan(40);
  }
  watch.clean();
  await context.close();
});
