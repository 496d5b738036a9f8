// Hands on the keyboard, the mouse is away: the board, the help, the palette, and a decision in the inbox.
import { type Page, expect, test } from "@playwright/test";
import { enter } from "./browser";
import { Scratch, settings, task } from "./scratch";

let scratch: Scratch;
let link: string;

test.beforeAll(async () => {
  scratch = new Scratch("key-shop", settings(`[review]\nmode = "per-task"\n`));
  scratch.add(["one", "two", "three"].map((name) => task({ title: `Write ${name}` }, `signal = "complete"\n[[write]]\npath = "${name}.txt"\ntext = "x\\n"\n`)).join(""));
  scratch.try("run", "--non-interactive");
  scratch.add(["four", "five"].map((name) => task({ title: `Write ${name}`, priority: 7 }, `signal = "complete"\n[[write]]\npath = "${name}.txt"\ntext = "x\\n"\n`)).join(""));
  link = await scratch.serve();
});

test.afterAll(async () => {
  await scratch?.remove();
});

/** What has the focus is drawn so that it can be seen. */
async function seen(page: Page, what: string) {
  const drawn = await page.evaluate(() => {
    const at = document.activeElement;
    if (!at || at === document.body) return "nothing has the focus";
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const outline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0;
    return outline && inside ? "" : `${at.tagName} ${at.className} outline ${style.outlineStyle} ${style.outlineWidth} at ${box.top}..${box.bottom}`;
  });
  expect(drawn, what).toBe("");
}

/** Keys do something from the moment on that scripts run. */
async function live(page: Page, at: RegExp) {
  await expect(page).toHaveURL(at);
  await expect(page.locator("#tools")).toBeVisible();
}

test("the pages are worked by keys alone", async ({ browser }) => {
  const { context, page, watch } = await enter(browser, link);

  // The first key leads past the navigation.
  await page.goto("/");
  await page.keyboard.press("Tab");
  await expect(page.locator(".skip")).toBeFocused();
  await seen(page, "the skip link");
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
  for (let step = 0; step < 8; step += 1) {
    await page.keyboard.press("Tab");
    await seen(page, `step ${step}`);
  }

  // Help.
  await page.goto("/");
  await live(page, /\/$/);
  await page.keyboard.press("?");
  await expect(page.locator("#keys-dialog")).toContainText("Next card or row");
  await page.keyboard.press("Escape");
  await expect(page.locator("#keys-dialog")).toHaveCount(0);

  // Cards.
  await page.keyboard.press("j");
  const first = await page.evaluate(() => document.activeElement?.closest("[data-task]")?.id);
  expect(first).toMatch(/^card-T/);
  await seen(page, "a card");
  await page.keyboard.press("j");
  const second = await page.evaluate(() => document.activeElement?.closest("[data-task]")?.id);
  expect(second).not.toBe(first);
  await page.keyboard.press("k");
  expect(await page.evaluate(() => document.activeElement?.closest("[data-task]")?.id)).toBe(first);
  await page.keyboard.press("Enter");
  await live(page, new RegExp(`/tasks/${first!.slice(5)}`));

  // The palette finds a task by its words and a page by its name.
  await page.keyboard.press("Control+k");
  await expect(page.locator("#palette input")).toBeFocused();
  await page.keyboard.type("write five");
  await expect(page.locator("#palette .palette-item").first()).toContainText("Write five");
  await page.keyboard.press("Enter");
  await expect(page.locator("h1")).toContainText("Write five");
  await live(page, /\/tasks\/T5/);
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  await expect(page.locator("#palette")).toHaveCount(0);

  // Letters are letters while somebody types.
  await page.keyboard.press("p");
  await live(page, /\/backlog/);
  await page.keyboard.press("/");
  await expect(page.locator("#f-text")).toBeFocused();
  await page.keyboard.type("smxjk?");
  await expect(page.locator("#f-text")).toHaveValue("smxjk?");
  await expect(page).toHaveURL(/\/backlog$/);
  await page.keyboard.press("Escape");

  // Other pages by their keys.
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  for (const [key, at] of [["m", "/queue"], ["s", "/settings"], ["l", "/discoveries"], ["S", "/sprint"]] as const) {
    await page.keyboard.press(key === "S" ? "Shift+S" : key);
    await live(page, new RegExp(`${at}$`));
  }

  // Decides in the inbox, and stands before the next decision.
  await page.keyboard.press("r");
  await live(page, /\/inbox/);
  // Whichever came first stands first.
  const title = page.locator("#item-title");
  await expect(title).toContainText(/T\d+ Write/);
  const foremost = /T\d+/.exec(await title.innerText())?.[0] ?? "";
  await page.keyboard.press("a");
  await expect(page.locator("#toasts")).toContainText(/T\d+|approved|land/i);
  await expect(title).not.toContainText(foremost);
  await expect.poll(() => scratch.json("show", foremost).status).not.toBe("review");

  // A second decision leads to the next one too, not back to the beginning.
  const next = /T\d+/.exec(await title.innerText())?.[0] ?? "";
  await page.keyboard.press("a");
  await expect(title).not.toContainText(next);
  const third = /T\d+/.exec(await title.innerText())?.[0] ?? "";
  expect([foremost, next]).not.toContain(third);

  // Adds a task from here: the toast leads to it.
  await page.keyboard.press("+");
  await expect(page.locator("#add-task-title")).toHaveText("Add a task");
  await page.locator("#add-task input[name=title]").fill("Write six");
  await page.keyboard.press("Enter");
  await expect(page.locator("#toasts a[href='/tasks/T6']")).toBeVisible();
  await expect(page.locator("#add-task")).toHaveCount(0);
  watch.clean();
  await context.close();
});
