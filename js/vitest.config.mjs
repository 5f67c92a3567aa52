import { defineConfig } from "vitest/config";

export default defineConfig({
  // Some tests go through millions of events, and the machine may have other things to do.
  test: { include: ["test/**/*.test.ts"], environment: "happy-dom", testTimeout: 60_000 },
});
