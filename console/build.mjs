// Bundles src/ into retrieval/console/, which the server reads at its start. Same sources, same bytes.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";

const out = "../retrieval/console";

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const { metafile } = await build({
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
});
await copyFile("index.html", `${out}/index.html`);
await copyFile("icon.svg", `${out}/icon.svg`);

// The licences of the packages that went in ask to be passed on.
const inputs = Object.keys(metafile.inputs).map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
const packages = [...new Set(inputs.filter(Boolean))].sort();
const licences = packages.map(async (name) => `${name}\n\n${await readFile(`node_modules/${name}/LICENSE`, "utf8")}`);
await writeFile(`${out}/licenses.txt`, (await Promise.all(licences)).join("\n\n"));
