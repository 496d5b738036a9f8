// How the tests of the pages run. `cargo xtask web` starts them and says by the environment where everything is.
import { defineConfig } from "@playwright/test";

const out = process.env.LANDFALL_WEB_OUT ?? "out";

export default defineConfig({
  testDir: "tests",
  outputDir: `${out}/traces`,
  workers: 2, // more would measure each other
  fullyParallel: false,
  retries: 0, // a test that passes at the second try has found something
  forbidOnly: true,
  timeout: 90_000,
  globalTimeout: 10 * 60_000, // on a loaded machine; alone it takes a third of it
  expect: { timeout: 15_000 },
  reporter: [["list"]],
  use: {
    actionTimeout: 15_000,
    navigationTimeout: 20_000,
    trace: "off",
    launchOptions: {
      executablePath: process.env.LANDFALL_CHROMIUM,
      // Chromium refuses its own sandbox to root; a container has little shared memory.
      args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--disable-dev-shm-usage"],
    },
  },
});
