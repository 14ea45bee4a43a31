import { useState } from "preact/hooks";

import { type Settings, hasKey } from "../api";
import { requestBody } from "./ask";
import { Copy } from "./copy";

function curl(namespace: string, body: Record<string, unknown>): string {
  const json = JSON.stringify(body).replaceAll("'", "'\\''");
  const url = `${location.origin}/v1/namespaces/${encodeURIComponent(namespace)}/context`;
  const key = hasKey() ? `-H "Authorization: Bearer $TRIVET_API_KEY" ` : "";
  return `curl -s '${url}' \\\n  ${key}-H 'content-type: application/json' \\\n  -d '${json}'`;
}

function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonLiteral(one)}`);
  return `{${fields.join(", ")}}`;
}

function python(namespace: string, body: Record<string, unknown>): string {
  const { query, ...fields } = body;
  const address = JSON.stringify(location.origin) + (hasKey() ? `, os.environ["TRIVET_API_KEY"]` : "");
  const options = Object.entries(fields).map(([name, value]) => `        ${name}=${pythonLiteral(value)},\n`);
  return [
    hasKey() ? "import os\n\nimport trivet\n" : "import trivet\n",
    `with trivet.Client(${address}, namespace=${JSON.stringify(namespace)}) as client:`,
    `    pack = client.context(\n        ${JSON.stringify(query)},\n${options.join("")}    )`,
    "    print(pack.context)",
  ].join("\n");
}

/** The request that was sent, as code for the reader's own program. */
export function RequestCode({ namespace, query, settings }: { namespace: string; query: string; settings: Settings }) {
  const [language, setLanguage] = useState<"curl" | "Python">("curl");
  const body = requestBody(query, settings);
  const code = language === "curl" ? curl(namespace, body) : python(namespace, body);
  return (
    <section class="panel code">
      <div class="row spread">
        <h2>Request</h2>
        <div class="row">
          {(["curl", "Python"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={one === language} onClick={() => setLanguage(one)}>
              {one}
            </button>
          ))}
          <Copy text={code} label="Copy request" />
        </div>
      </div>
      <pre tabIndex={0} aria-label="Request code">
        {code}
      </pre>
    </section>
  );
}
