// How the tests of the pages run. `cargo xtask web` starts them and says by the environment where everything is.
import { defineConfig } from "@playwright/test";

const out = process.env.LANDFALL_WEB_OUT ?? "out";

export default defineConfig({
  testDir: "tests",
  // Not tests: one makes the pictures of the guide when somebody names a folder for them, the other contact sheets of the pages.
  testIgnore: [...(process.env.LANDFALL_WEB_PICTURES ? [] : ["pictures.spec.ts"]), ...(process.env.LANDFALL_WEB_SHOTS ? [] : ["shots.spec.ts"])],
  outputDir: `${out}/traces`,
  workers: 2, // more would measure each other
  fullyParallel: false,
  retries: 1, // reported as flaky by `cargo xtask test`
  forbidOnly: true,
  timeout: 240_000, // alone none takes a quarter of it
  globalTimeout: 30 * 60_000, // they run beside all other tests; alone they take three minutes
  expect: { timeout: 60_000 },
  reporter: [["list"], ["junit", { outputFile: process.env.LANDFALL_WEB_JUNIT ?? `${out}/junit.xml` }]],
  use: {
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    trace: "off",
    launchOptions: {
      executablePath: process.env.LANDFALL_CHROMIUM,
      // Chromium refuses its own sandbox to root; a container has little shared memory.
      args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--disable-dev-shm-usage"],
    },
  },
});
