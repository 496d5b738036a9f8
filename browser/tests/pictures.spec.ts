// The pictures of the guide, made anew when LANDFALL_WEB_PICTURES names the folder they belong to.
import path from "node:path";
import { expect, test } from "@playwright/test";
import { blank, enter } from "./browser";
import { lively } from "./lively";

const FOLDER = process.env.LANDFALL_WEB_PICTURES;

test("pictures for the guide", async ({ browser }) => {
  const { scratch, link } = await lively();
  try {
    const { context, page } = await enter(browser, link, { viewport: { width: 1280, height: 860 }, colorScheme: "light" });
    await page.locator("#act-start").getByRole("button").click();
    await expect(page.locator("#card-T5")).toContainText(/review/i, { timeout: 30_000 });
    await expect(page.locator("#column-working .card")).toHaveCount(2, { timeout: 30_000 });
    await page.waitForTimeout(9_000); // long enough for agents to have said something
    const kept = await context.storageState();
    const shoot = async (at: string, name: string) => {
      await page.goto(at);
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(FOLDER!, `${name}.png`) });
    };
    await shoot("/", "now");
    await shoot("/inbox?task=T5", "inbox");
    await shoot("/queue", "queue");
    await page.goto("/tasks/T5/diff");
    await page.locator("tr[data-line='3'] .d-num").first().click();
    await page.getByLabel("Comment on line 3").fill("what if the browser has no passkeys?");
    await page.getByLabel("Comment on line 3").scrollIntoViewIfNeeded();
    await page.locator("main .tabs").evaluate((it) => window.scrollTo(0, it.getBoundingClientRect().top + window.scrollY - 70));
    await page.screenshot({ path: path.join(FOLDER!, "task.png") });
    await context.close();
    const phone = await blank(browser, new URL(scratch.url).host, { viewport: { width: 390, height: 780 }, storageState: kept, hasTouch: true, colorScheme: "dark" });
    const small = await phone.context.newPage();
    await small.goto("/");
    await small.waitForTimeout(300);
    await small.screenshot({ path: path.join(FOLDER!, "phone.png") });
    await phone.context.close();
  } finally {
    await scratch.remove();
  }
});
