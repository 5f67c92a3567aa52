// Bundles the front end into ../src/tfprof_widgets/static: nothing is loaded from elsewhere at run time.
//   widget.js  ES module for anywidget          inline.js  classic script for the self-contained HTML
//   link.js    ES module of the undisplayed widget that links that HTML to a running kernel
import { context, build, transform } from "esbuild";
import { readFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const watch = process.argv.includes("--watch");
const outdir = here("../src/tfprof_widgets/static");

/** `import css from "./x.css"` gives the sheet as minified text; nesting is lowered for older browsers. */
const cssText = {
  name: "css-text",
  setup(b) {
    b.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      let source = await readFile(path, "utf8");
      // A library's sheet must not reach the page around the report.
      if (path.includes("node_modules")) source = `.tfprof-report { ${source} }`;
      const { code } = await transform(source, { loader: "css", minify: true, target: ["chrome100", "safari15", "firefox100"] });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

/** The licences of what is bundled ask to go with every copy. */
const bundled = ["@uwdata/flechette", "tabulator-tables"];
const licences = await Promise.all(
  bundled.map(async (name) => `${name}\n\n${(await readFile(here(`node_modules/${name}/LICENSE`), "utf8")).trim()}`),
);

const shared = {
  bundle: true,
  minify: !watch,
  sourcemap: watch ? "inline" : false,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "info",
  banner: { js: `/*! Bundled in this file:\n\n${licences.join("\n\n")}\n*/` },
  outdir,
  plugins: [cssText],
};
const jobs = [
  { ...shared, entryPoints: [here("src/widget.ts"), here("src/link.ts")], format: "esm" },
  { ...shared, entryPoints: [here("src/inline.ts")], format: "iife" },
];

await mkdir(outdir, { recursive: true });
if (watch) {
  for (const job of jobs) await (await context(job)).watch();
} else {
  await Promise.all(jobs.map((job) => build(job)));
}
