// A project in the middle of its day: work landed, a batch was red, agents are at work, and some things wait for a person.
import { Scratch, settings, task } from "./scratch";

/** Fails when the two changes that do not fit together are both there. */
const TESTS = `set -e
for file in src/*.js; do case "$(cat "$file")" in *"throw new Error('not done')"*) echo "FAIL $file"; exit 1;; esac; done
if [ -e src/price-cache.js ] && [ -e src/currency.js ] && grep -q float src/price-cache.js; then
  echo "FAIL tests/price.test.js: 19.989999 is not 19.99"; exit 1
fi
echo "ok 42 tests"
`;

const FILES = {
  "test.sh": TESTS,
  "lint.sh": "echo 'no complaint'\n",
  "src/cart.js": "export function total(lines) {\n  let sum = 0;\n  for (const line of lines) sum += line.price * line.count;\n  return sum;\n}\n",
  "src/price.js": "export function price(cents) {\n  return `${(cents / 100).toFixed(2)} EUR`;\n}\n",
  "src/login.js": "export function login(name, password) {\n  return check(name, password);\n}\n",
  "tests/cart.test.js": "import { total } from '../src/cart.js';\ntest('empty', () => expect(total([])).toBe(0));\n",
};

const SETTINGS = settings(
  `[agent.careful]
kind = "script"
model = "opus"
account = "reviewer"
[run]
slots = 4
[land]
batch = 4
[review.tags]
security = "per-task"
[budget]
day_usd = 25.0
`,
  "sh test.sh",
).replace("[agent.default]", '[[verify.command]]\nname = "lint"\nrun = "sh lint.sh"\n[agent.default]');

function writes(file: string, text: string, message: string, more = ""): string {
  return `usage = { tokens_in = 21400, tokens_out = 3100, micro_usd = 184000 }
[[iteration]]
${more}say = ["Reading the code around it.", "The smallest change that does it is in ${file}.", "Running the tests."]
commit = ${JSON.stringify(message)}
signal = "complete"
[[iteration.write]]
path = ${JSON.stringify(file)}
text = ${JSON.stringify(text)}
`;
}

/** What has happened when the server starts. */
const MORNING = [
  task({ id: "empty-cart", title: "Say something kind when the cart is empty", size: "S", tags: ["quick-win"], priority: 2 }, writes("src/empty.js", "export const empty = 'Nothing here yet. Have a look at the new arrivals.';\n", "cart: a kind word when it is empty")),
  task({ id: "cache", title: "Cache prices for a minute", size: "M", tags: ["backend"], priority: 3 }, writes("src/price-cache.js", "const kept = new Map(); // float\nexport function cached(id, ask) {\n  if (!kept.has(id)) kept.set(id, ask(id));\n  return kept.get(id);\n}\n", "price: keep it for a minute")),
  task({ id: "sort", title: "Sort search results by relevance", size: "S", tags: ["search"], priority: 4 }, writes("src/search.js", "export function sorted(found) {\n  return found.sort((a, b) => b.score - a.score);\n}\n", "search: by relevance")),
  task(
    { id: "currency", title: "Show prices in the customer's currency", size: "M", tags: ["backend"], priority: 5 },
    `usage = { tokens_in = 30100, tokens_out = 5200, micro_usd = 302000 }
[[iteration]]
say = "Rates are read once a day."
signal = ["discovery-global:prices are kept in cents everywhere; only src/price.js makes words of them", "complete"]
[[iteration.write]]
path = "src/currency.js"
text = "export const rates = { EUR: 1, USD: 1.09 };\\n"
[[iteration]]
say = "The rates round by themselves now."
signal = "complete"
delete = ["src/currency.js"]
[[iteration.write]]
path = "src/rates.js"
text = "export const rates = { EUR: 100, USD: 109 }; // per hundred: no fractions\\n"
`,
  ),
].join("");

const drip = (lines: string[], pause: string) => lines.map((text) => `[[iteration.say]]\ntext = ${JSON.stringify(text)}\npause = ${JSON.stringify(pause)}\n`).join("");

/** What goes on while somebody looks. */
const NOON = [
  task({ id: "passkeys", title: "Sign in with a passkey", size: "L", tags: ["security", "next"], priority: 1, criteria: ["a passkey can be added on the account page", "a password still works"] },
    `usage = { tokens_in = 88200, tokens_out = 14100, micro_usd = 912000 }
[[iteration]]
say = "Registration and assertion are two endpoints."
commit = "login: passkeys beside passwords"
signal = "complete"
[[iteration.write]]
path = "src/passkey.js"
text = "export async function register(user) {\\n  const options = await fetch('/passkey/options', { method: 'POST' });\\n  return navigator.credentials.create(await options.json());\\n}\\n\\nexport async function assert() {\\n  return navigator.credentials.get({ publicKey: await challenge() });\\n}\\n"
[[iteration.edit]]
path = "src/login.js"
find = "  return check(name, password);\\n"
replace = "  if (name.passkey) return assert(name.passkey);\\n  return check(name, password);\\n"
`, "Customers ask for it every week. Keep passwords working."),
  task({ id: "reset", title: "Slow down password reset requests", size: "S", tags: ["backend"], priority: 2 }, `usage = { tokens_in = 9100, tokens_out = 700, micro_usd = 61000 }\n[[iteration]]\nsay = "The task does not say how many are fine."\nsignal = "pending:How many reset mails per hour and address are fine: 3 or 10?"\n[[iteration]]\nsignal = "complete"\n[[iteration.write]]\npath = "src/reset.js"\ntext = "export const perHour = 3;\\n"\n`),
  task({ id: "invoice", title: "Send the invoice as a PDF", size: "M", tags: ["backend"], priority: 3 },
    `usage = { tokens_in = 41000, tokens_out = 6200, micro_usd = 388000 }\n[[iteration]]\nsignal = "complete"\n[[iteration.write]]\npath = "src/invoice.js"\ntext = "export function invoice(order) {\\n  return render(order);\\n}\\n"\n${drip(["Reading src/cart.js", "The total is computed twice; the invoice needs the one with tax.", "$ npm test -- invoice", "warning: 1 test is skipped", "2 passed, 1 failed: the date is in the wrong zone", "Mending the zone.", ...Array.from({ length: 60 }, (_, at) => `page ${at + 1} of the sample order drawn`)], "2s")}`),
  task({ id: "photos", title: "Load product photos only when they are seen", size: "M", tags: ["frontend"], priority: 3, agent: "careful" },
    `usage = { tokens_in = 52000, tokens_out = 7300, micro_usd = 441000 }\n[[iteration]]\nsignal = "complete"\n[[iteration.write]]\npath = "src/photos.js"\ntext = "export const eager = 2;\\n"\n${drip(["Looking at what the first paint waits for.", ...Array.from({ length: 60 }, (_, at) => `measured: ${1400 - at * 11} ms to the first photo`)], "2s")}`),
  task({ id: "stock", title: "Warn when the last piece is in three carts", size: "S", tags: ["backend"], priority: 6, needs: ["invoice"] }, writes("src/stock.js", "export const last = 1;\n", "stock: warn")),
  task({ id: "wishlist", title: "Share a wish list by link", size: "M", tags: ["frontend"], priority: 6, needs: ["photos"] }, writes("src/wishlist.js", "export const shared = true;\n", "wishlist: a link")),
  task({ id: "tax", title: "Tax for orders to Norway", size: "L", tags: ["backend", "later"], priority: 7 }, `[[iteration]]\nsay = "The rules are not in the repository."\nsignal = "blocked:the tax table for Norway is not in the repository, and I may not invent one"\n`),
  task({ id: "returns", title: "Let customers return a part of an order", size: "XL", tags: ["later"], priority: 8, needs: ["stock", "tax"] }, writes("src/returns.js", "export const partial = true;\n", "returns")),
].join("");

/** Makes the project. It takes a few seconds; agents are at work for two minutes more. */
export async function lively(): Promise<{ scratch: Scratch; link: string }> {
  const scratch = new Scratch("harbour-shop", SETTINGS, FILES);
  try {
    scratch.add(MORNING);
    scratch.landfall("queue", "pause", "--reason", "until all stand in line");
    scratch.try("run"); // it ends because the queue wants a person
    scratch.landfall("queue", "resume");
    scratch.landfall("sprint", "start", "--no-ready");
    scratch.landfall("checkpoint", "create", "before-summer-sale");
    scratch.add(NOON);
    return { scratch, link: await scratch.serve() };
  } catch (error) {
    await scratch.remove(); // nobody else knows of it yet
    throw error;
  }
}
