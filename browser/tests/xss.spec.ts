// Text that would like to be a script, in every field that a task, an agent, a branch, a file or a person can fill.
// Nothing runs, nothing is fetched from elsewhere, no element is made of it, and it can be read as the text it is.
import { expect, type Page, test } from "@playwright/test";
import { enter, violations } from "./browser";
import { Scratch, settings, task } from "./scratch";

const RUN = "console.log('CANARY');alert(1)";

/** Texts that can be read as they are. */
const PLAIN = [
  `<script>${RUN}</script>`,
  `<ScRiPt src=//evil.invalid/a.js></ScRiPt>`,
  `"><script>${RUN}</script>`,
  `'><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `</textarea><script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `</style><script>${RUN}</script>`,
  `</template></noscript><script>${RUN}</script>`,
  `--><script>${RUN}</script><!--`,
  `]]><script>${RUN}</script>`,
  `<img src=x onerror=${RUN}>`,
  `<img src="//evil.invalid/pixel">`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<math><mtext></form><form><mglyph><style></math><img src onerror=${RUN}>`,
  `<iframe srcdoc="&lt;script&gt;parent.${RUN}&lt;/script&gt;"></iframe>`,
  `<iframe src="javascript:${RUN}"></iframe>`,
  `<a href="javascript:${RUN}">look</a>`,
  `[look](javascript:${RUN})`,
  `[look](data:text/html,<script>${RUN}</script>)`,
  `![look](//evil.invalid/pixel.png)`,
  `<a href="data:text/html;base64,PHNjcmlwdD4=">look</a>`,
  `javascript:${RUN}`,
  `<details open ontoggle=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<body onload=${RUN}>`,
  `<style>@import '//evil.invalid/a.css';</style>`,
  `<link rel=stylesheet href=//evil.invalid/a.css>`,
  `<base href="//evil.invalid/">`,
  `<meta http-equiv=refresh content="0;url=//evil.invalid/">`,
  `<form action=//evil.invalid/><button>`,
  `<div hx-get="//evil.invalid/" hx-trigger="load">`,
  `<div hx-on:load="${RUN}" data-hx-get=/do/stop hx-trigger=load>`,
  `" onmouseover="${RUN}" x="`,
  `' autofocus onfocus='${RUN}' x='`,
  "` onclick=`" + RUN + "`",
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}} <%= ${RUN} %> #{${RUN}} {% raw %}`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `&#x3C;script&#x3E;${RUN}&#60;/script&#62;`,
  `%3Cscript%3E${RUN}%3C/script%3E`,
  `\\u003cscript\\u003e${RUN}`,
];

/** Texts that are made visible, or that are too long for any line. */
const ODD = [
  `\u202e<script>${RUN}</script>\u202c`,
  `\u2066right\u2069 \u200bzero \u200e\u200f marks`,
  `\ufeff<img src=x onerror=${RUN}>`,
  `＜script＞${RUN}＜/script＞`,
  `W${"o".repeat(190)}rd`,
  "𝕏 é ﷽ 👩‍👩‍👧‍👦 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤a",
];

const ALL = [...PLAIN, ...ODD];
const LINES = ALL.join("\n");
/** A signal is a tag by itself, so it holds no other. What agents say by the command or by tools may. */
const SIGNALS = ALL.filter((text) => !/[<>]/.test(text));
const LANDFALL = process.env.LANDFALL_BIN ?? "landfall";

/** A name that a file can have. */
const name = (text: string) => text.replaceAll("/", "∕").slice(0, 120);
const toml = (text: string) => JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, "?");

function hostile(): string {
  const titles = ALL.map((text, at) => task({ title: text, criteria: [text], draft: at % 3 === 0, size: "S" }, `say = ${toml(text)}\nsignal = ${toml(`blocked:${SIGNALS[at % SIGNALS.length]}`)}`, text));
  const works = task(
    { id: "works", title: `works ${PLAIN[0]}`, tags: ["wanted"], criteria: ALL, priority: 0 },
    `usage = { tokens_in = 10, tokens_out = 10 }
[[iteration]]
say = [${ALL.map(toml).join(", ")}]
commit = ${toml(LINES)}
run = ["sh", "say.sh"]
signal = [${SIGNALS.map((text) => toml(`discovery-global:${text}`)).join(", ")}, "complete"]
${ALL.map((text, at) => `[[iteration.write]]\npath = ${toml(`${at} ${name(text)}`)}\ntext = ${toml(`${LINES}\n`)}`).join("\n")}
`,
    LINES,
  );
  const asks = SIGNALS.slice(0, 6).map((text, at) => task({ title: `asks ${at}`, priority: 1 }, `say = ${toml(PLAIN[at]!)}\nsignal = ${toml(`pending:${text} a) ${SIGNALS[at + 1]} b) ${SIGNALS[at + 2]}`)}`));
  return [works, ...asks, ...titles].join("");
}

/** What there would be if a text had become more than a text. */
function made(): string[] {
  const never = "main img, main script, main iframe, main object, main embed, main base, main link, main meta, main style, body > script, [onerror], [onload], [onclick], [onfocus], [onmouseover], [ontoggle], [onbegin], [data-hx-get]";
  const leads = ["href", "src", "action", "formaction", "hx-get", "hx-post"];
  const away = [...document.querySelectorAll(leads.map((it) => `[${it}]`).join())].filter((element) =>
    leads.some((name) => element.hasAttribute(name) && new URL(element.getAttribute(name) ?? "", location.href).origin !== location.origin),
  );
  return [...document.querySelectorAll(never), ...away].map((it) => it.outerHTML.slice(0, 200));
}

/** What goes wrong on a page, one after the other. */
class Looks {
  readonly wrong: string[] = [];

  constructor(private readonly page: Page) {}

  async at(at: string) {
    const answer = await this.page.goto(at);
    if ((answer?.status() ?? 500) >= 500) this.wrong.push(`${at}: ${answer?.status()}`);
    await this.here(at);
    const sideways = await this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (sideways > 0) this.wrong.push(`${at}: ${sideways} px too wide`);
  }

  async here(name: string) {
    for (const it of await this.page.evaluate(made)) this.wrong.push(`${name}: ${it}`);
  }

  async reads(at: string, texts: string[]) {
    const text = await this.page.locator("main").evaluate((it) => it.textContent ?? "");
    for (const one of texts) if (!text.includes(one)) this.wrong.push(`${at}: cannot be read: ${one}`);
  }
}

const TABS = ["", "/log", "/diff", "/checks", "/gates", "/target", "/attempts", "/cost", "/certificate", "/history"];

let scratch: Scratch;
let link: string;

test.beforeAll(async () => {
  // Checks say and are called what the attacker likes, too.
  const checks = PLAIN.slice(0, 4).map((text, at) => `[[verify.command]]\nname = ${toml(`${at} ${text}`)}\nrun = "cat notes.txt; cat notes.txt >&2${at === 3 ? "; exit 1" : ""}"\nrequired = false\n`).join("");
  scratch = new Scratch("evil<b>shop", `${settings("[run]\nslots = 4\nfailures_max = 0\n[review.tags]\nwanted = \"per-task\"\n")}${checks}`, {
    "notes.txt": `${LINES}\n`,
    "say.sh": PLAIN.slice(0, 12).map((text) => `${LANDFALL} signal discovery-global '${text.replaceAll("'", "'\\''")}'\n`).join(""),
  });
  // Tags are words of few letters; whoever tries others is refused.
  expect(scratch.try("add", "one", "--tag", PLAIN[0]!)).toContain("is not a tag");
  scratch.add(hostile());
  link = await scratch.serve();
});

test.afterAll(async () => {
  await scratch?.remove();
});

test("text from outside is text on every page", async ({ browser }) => {
  test.setTimeout(240_000);
  const { context, page, watch } = await enter(browser, link);
  watch.expected.push(/the server responded with a status of 404/);
  const looks = new Looks(page);
  const { wrong } = looks;
  const look = (at: string) => looks.at(at);
  const reads = (at: string, texts: string[]) => looks.reads(at, texts);

  // Words of people, by the forms that they have.
  await page.goto("/sessions");
  await page.getByLabel("What to call it").first().fill(PLAIN[2]!);
  await page.getByRole("button", { name: "Make a link" }).click();
  await expect(page.locator("#pairing")).toBeVisible();
  const second = (await page.locator("#pairing code").first().textContent())!;
  const other = await enter(browser, second);
  await other.context.close();
  // The name of a checkpoint can only be plain, and whoever tries another is told so in a page.
  for (const text of [PLAIN[11]!, ODD[0]!]) expect(scratch.try("checkpoint", "create", text)).toContain("is not a name");

  // It runs while the board is open: live news carry the same texts.
  await page.goto("/");
  await page.locator("#act-start").getByRole("button").click();
  await expect.poll(() => scratch.json("inbox").items.length, { timeout: 60_000 }).toBeGreaterThan(6);
  await expect.poll(() => scratch.json("show", "T1").task?.status ?? scratch.json("show", "T1").status, { timeout: 60_000 }).toBe("review");
  scratch.landfall("queue", "pause", "--reason", PLAIN[5]!);
  scratch.try("hold", "T9", PLAIN[3]!);
  scratch.try("block", "T9", PLAIN[12]!);
  scratch.try("stop", "T3");
  scratch.try("tell", "T1", LINES);

  for (const it of await page.evaluate(made)) wrong.push(`live: ${it}`);
  await page.keyboard.press("Control+k");
  await page.locator("#palette input").fill("script");
  await expect(page.locator("#palette .palette-item").nth(3)).toContainText("script");
  for (const it of await page.evaluate(made)) wrong.push(`palette: ${it}`);
  await page.keyboard.press("Escape");

  const links = await page.locator(".rail a[href]").evaluateAll((all) => all.map((it) => it.getAttribute("href") ?? ""));
  for (const at of [...links, "/backlog?view=order", "/sprints", "/runs/1", "/flows/loop", "/doctor", "/sessions", "/problems", "/help"]) await look(at);
  for (const text of PLAIN.slice(0, 8)) await look(`/backlog?text=${encodeURIComponent(text)}&tag=${encodeURIComponent(text)}&status=${encodeURIComponent(text)}&parent=${encodeURIComponent(text)}`);
  for (const tab of [...TABS, "/diff?view=split"]) await look(`/tasks/T1${tab}`);
  for (const id of ["T2", "T8", "T9", "T20", "T53"]) for (const tab of ["", "/log", "/history"]) await look(`/tasks/${id}${tab}`);
  for (const text of PLAIN.slice(0, 6)) {
    await look(`/tasks/T1/log?search=${encodeURIComponent(text)}`);
    await look(`/inbox?task=${encodeURIComponent(text)}&kind=${encodeURIComponent(text)}`);
    await look(`/graph?root=${encodeURIComponent(text)}`);
  }
  const refused = await page.goto(`/tasks/${encodeURIComponent(PLAIN[0]!)}`);
  expect(refused?.status()).toBe(404);
  for (const it of await page.evaluate(made)) wrong.push(`a task that is not there: ${it}`);

  // It can be read where it belongs.
  await page.goto("/backlog?status=all");
  const titles = PLAIN.filter((text) => !/\s{2}/.test(text));
  let seen = await page.locator("main").evaluate((it) => it.textContent ?? "");
  for (let next = page.locator("main a[rel=next]"); await next.count(); ) {
    await next.first().click();
    await page.waitForLoadState();
    seen += await page.locator("main").evaluate((it) => it.textContent ?? "");
  }
  for (const one of titles) if (!seen.includes(one)) wrong.push(`backlog: cannot be read: ${one}`);
  await page.goto("/tasks/T1");
  await reads("task", PLAIN.slice(0, 10));
  await page.goto("/tasks/T1/log");
  await reads("log", PLAIN.slice(0, 10));
  await page.goto("/tasks/T1/diff");
  await reads("diff", PLAIN.slice(0, 10));
  await page.goto("/discoveries");
  await reads("discoveries", [...PLAIN.slice(0, 3), ...SIGNALS.slice(0, 3)]);
  await page.goto("/inbox");
  for (const it of await violations(page)) wrong.push(`inbox: ${it}`);

  // Direction and zero width are shown, not obeyed.
  await page.goto("/backlog?status=all&text=marks");
  expect(await page.locator("main").innerText()).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);

  expect(wrong).toEqual([]);
  watch.clean();
  await context.close();
});

/** What an agent's program says while it works: names of tools, what they are given, what came of them, models and sessions. */
function stream(): string {
  const said = PLAIN.map((text, at) => ({
    type: "assistant",
    message: {
      id: `m${at}`,
      model: text,
      content: [
        { type: "text", text },
        { type: "tool_use", id: `t${at}`, name: at % 2 ? text : "Bash", input: { command: text, file_path: text, description: text, [text]: text } },
      ],
      usage: { input_tokens: 10, output_tokens: 10 },
    },
  }));
  const came = PLAIN.map((text, at) => ({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: `t${at}`, is_error: at % 3 === 0, content: text }] } }));
  const init = { type: "system", subtype: "init", session_id: PLAIN[0], model: PLAIN[1], tools: PLAIN, cwd: PLAIN[2], permissionMode: PLAIN[3] };
  return [init, ...said.flatMap((it, at) => [it, came[at]!]), said[1]!].map((it) => JSON.stringify(it)).join("\n");
}

test("the names of tools and models are text while the agent works", async ({ browser }) => {
  test.setTimeout(180_000);
  const tools = new Scratch("tools", settings("[run]\nslots = 2\niterations_max = 1\nrestarts_max = 0\n").replace('kind = "script"', 'kind = "claude"\nmodel = "<b>sonnet</b>"\nsandbox = "off"'));
  try {
    tools.write("../stream.jsonl", `${stream()}\n`);
    tools.program("claude", `#!/bin/sh\ncase "$*" in *--version*) echo '2.1.325 (Claude Code)'; exit 0;; esac\ncat '${tools.folder}/stream.jsonl'\ncat '${tools.folder}/stream.jsonl' >&2\nwhile [ ! -e '${tools.folder}/go' ]; do sleep 0.1; done\necho '{"type":"result","subtype":"<img src=x onerror=alert(1)>","is_error":true,"result":"<script>alert(1)</script>"}'\n`);
    tools.landfall("add", "Works with tools");
    const { context, page, watch } = await enter(browser, await tools.serve());
    const looks = new Looks(page);
    await page.locator("#act-start").getByRole("button").click();
    const card = page.locator("#card-T1");
    await expect(card.locator(".card-doing")).toContainText("in a tool", { timeout: 60_000 });
    await expect(card.locator(".card-doing")).toContainText("evil.invalid", { timeout: 20_000 });
    await looks.here("the board, live");
    for (const at of ["/", "/fleet", "/inbox", ...TABS.map((tab) => `/tasks/T1${tab}`)]) await looks.at(at);
    await page.goto("/tasks/T1/log?raw=1");
    await looks.here("the log as it was printed");
    await page.goto("/tasks/T1/log");
    await looks.reads("log", PLAIN.slice(0, 4));
    // The last words come while the page is open.
    tools.write("../go", "");
    await expect.poll(() => tools.json("status").run?.phase ?? "none", { timeout: 60_000 }).toBe("none");
    for (const at of ["/", "/stats", "/inbox", "/runs/1", "/doctor", "/settings", ...TABS.map((tab) => `/tasks/T1${tab}`)]) await looks.at(at);
    expect(looks.wrong).toEqual([]);
    watch.clean();
    await context.close();
  } finally {
    await tools.remove();
  }
});

test("the names of branches and what trackers bring are text", async ({ browser }) => {
  test.setTimeout(180_000);
  // What git takes for the name of a branch.
  const branch = `x/"><script>${RUN.replace(";", "")}</script><img/src=x/onerror=alert(1)>`;
  const named = new Scratch("named", settings("[run]\nslots = 2\n"));
  try {
    named.git("branch", "--move", "main", branch);
    named.write("landfall.toml", settings("[run]\nslots = 2\n").replace('base = "main"', `base = ${toml(branch)}`));
    named.git("commit", "--quiet", "--all", "--message", `base ${PLAIN[0]}`);
    for (const text of PLAIN.slice(0, 5).filter((it) => !/\s|[~^:?*[\\]|\.\.|@\{/.test(it))) named.git("branch", text);
    const body = "\n\n```landfall-script\nrun = [\"sh\", \"-c\", \"git branch '<script>alert(2)</script>'; git checkout -q -b '<svg/onload=alert(3)>'\"]\nsignal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n```\n";
    const taken = named.try("add", "lands", "--body", body);
    const { context, page, watch } = await enter(browser, await named.serve());
    watch.expected.push(/the server responded with a status of (404|409|422)/);
    const looks = new Looks(page);
    // A tracker says where a task comes from, what it belongs to and which files it is about.
    const token = named.landfall("token").trim();
    let brought = 0;
    for (const [at, text] of PLAIN.entries()) {
      const whole = { title: `brought ${at}`, draft: true, source: text, body: text, touches: [text], tags: [text], flow: text, agent: text };
      for (const task of [whole, { ...whole, tags: [], flow: undefined, agent: undefined }, { ...whole, tags: [], touches: [], flow: undefined, agent: undefined }]) {
        const answer = await fetch(`http://${named.at}/api/v1/tasks`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({ tasks: [task] }),
        });
        expect(answer.status).toBeLessThan(500);
        if (answer.ok) {
          brought += 1;
          break;
        }
      }
    }
    expect(brought).toBeGreaterThan(30);
    await page.locator("#act-start").getByRole("button").click();
    await expect.poll(() => named.json("status").run?.phase ?? "none", { timeout: 60_000 }).toBe("none");
    const pages = ["/", "/queue", "/checkpoints", "/fleet", "/doctor", "/settings", "/stats", "/runs/1", "/graph", "/backlog?status=all", "/backlog?status=draft", "/discoveries"];
    for (const at of [...pages, ...TABS.map((tab) => `/tasks/T1${tab}`), ...["T2", "T9", "T30"].flatMap((id) => [`/tasks/${id}`, `/tasks/${id}/history`])]) await looks.at(at);
    // It stands where a person looks for it, or the engine said no and works on nothing.
    await page.goto("/tasks/T2");
    await looks.reads("a task from a tracker", PLAIN.slice(0, 1));
    const status = JSON.stringify(named.json("status"));
    expect(taken.includes("Error") || status.includes("<script>") || status.includes("\\u003c")).toBe(true);
    expect(looks.wrong).toEqual([]);
    watch.clean();
    await context.close();
  } finally {
    await named.remove();
  }
});
