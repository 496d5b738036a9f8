// A browser that is let in, and that remembers whatever went wrong in it.
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page, expect } from "@playwright/test";
import axe from "axe-core";

/** What a page must not do. */
export class Watch {
  readonly wrong: string[] = [];
  /** Sentences that are expected, such as those of a lost connection. A page that is drawn again while it is drawn, or left
   * meanwhile, breaks the first off; htmx calls that an error. */
  readonly expected: RegExp[] = [/htmx:(afterRequest|sendAbort), \[object HTMLElement\]$/];

  constructor(context: BrowserContext, private readonly host: string) {
    context.on("page", (page) => this.page(page));
  }

  private say(what: string) {
    if (!this.expected.some((it) => it.test(what))) this.wrong.push(what);
  }

  private page(page: Page) {
    page.on("console", (message) => {
      if (message.type() === "error" || message.text().startsWith("CANARY")) this.say(`console on ${page.url()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.say(`script on ${page.url()}: ${error.stack ?? error.message}`));
    page.on("dialog", (dialog) => {
      this.say(`dialog on ${page.url()}: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.host !== this.host && url.protocol !== "blob:" && url.protocol !== "data:") this.say(`request to ${request.url()} from ${page.url()}`);
    });
  }

  /** Expects that nothing went wrong until now. */
  clean() {
    expect(this.wrong).toEqual([]);
  }
}

/** Breaks of the policy become errors of the console, wherever they are. */
const POLICY = `document.addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective + " " + event.blockedURI + " " + (event.sample || "")));`;

/** A browser that came by a link, and what goes wrong in it. */
export async function enter(browser: Browser, link: string, options: BrowserContextOptions = {}): Promise<{ context: BrowserContext; page: Page; watch: Watch }> {
  const { context, watch } = await blank(browser, new URL(link).host, options);
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in this browser" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Now" })).toBeVisible();
  return { context, page, watch };
}

/** A browser that was let in before, or not at all. */
export async function blank(browser: Browser, host: string, options: BrowserContextOptions): Promise<{ context: BrowserContext; watch: Watch }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, baseURL: `http://${host}`, ...options });
  if (options.javaScriptEnabled !== false) await context.addInitScript(POLICY);
  return { context, watch: new Watch(context, host) };
}

/** What axe finds on a page. */
export async function violations(page: Page): Promise<string[]> {
  // By the tools of the browser: the policy of the page allows no script of others.
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const run = (globalThis as any).axe.run;
    const result = await run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"] });
    return result.violations.map((it: any) => `${it.id}: ${it.help}: ${it.nodes.slice(0, 3).map((node: any) => `${node.target.join(" ")} ${node.any?.[0]?.message ?? node.failureSummary}`).join(" | ")}`);
  });
  return found;
}

/** Shows what an agent printed: several outputs may be there, those of checks too. */
export async function output(page: Page, task: string, which: RegExp) {
  await page.goto(`/tasks/${task}/log`);
  const options = page.locator("#log-key option");
  const value = await options.filter({ hasText: which }).first().getAttribute("value");
  await page.goto(`/tasks/${task}/log?key=${encodeURIComponent(value ?? "")}`);
}
