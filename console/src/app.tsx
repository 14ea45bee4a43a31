import "./style.css";

import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type Namespace, call, whenRefused } from "./api";
import { Ask } from "./ask/ask";
import { isFocusFree } from "./focus";
import { Graph } from "./graph/graph";
import { KeyForm } from "./key_form";
import { type Loaded, useLoaded } from "./loading";
import { Memories } from "./memories/memories";
import { type Route, go, href, useRoute } from "./route";
import { State } from "./state/state";
import { useStored } from "./stored";
import { Tune } from "./tune/tune";
import { Failure } from "./ui/failure";
import { Toasts } from "./ui/toasts";

/** Properties of each view; `listing.reload` reads the namespaces' sizes again after a write. */
export interface ViewProps {
  namespace: string;
  route: Route;
  namespaces: Namespace[];
  listing: Loaded<unknown>;
}

const VIEWS: readonly { id: string; title: string; view: ComponentType<ViewProps> }[] = [
  { id: "ask", title: "Ask", view: Ask },
  { id: "graph", title: "Graph", view: Graph },
  { id: "memories", title: "Memories", view: Memories },
  { id: "tune", title: "Tune", view: Tune },
  { id: "state", title: "Status", view: State },
];

export function App() {
  const route = useRoute();
  const [needsKey, setNeedsKey] = useState(false);
  const listing = useLoaded((signal) => call<{ namespaces: Namespace[] }>("/v1/namespaces", { signal }), []);
  const focused = useRef<Element | null>(null);
  useEffect(() => {
    whenRefused(() => {
      focused.current ??= document.activeElement;
      setNeedsKey(true);
    });
  }, []);
  useEffect(() => {
    const before = focused.current;
    if (needsKey || !before) return;
    focused.current = null;
    (before instanceof HTMLElement && before !== document.body ? before : document.getElementById("main")!).focus();
  }, [needsKey]);
  const namespaces = listing.data?.namespaces ?? [];
  const namespace = route.namespace || (namespaces[0]?.name ?? "");
  const current = VIEWS.find(({ id }) => id === route.view) ?? VIEWS[0]!;
  const View = current.view;
  const { id, query } = route;
  const opened = query.get("q") ?? query.get("session") ?? query.get("document") ?? (View === Memories ? id : "");
  useEffect(() => {
    document.title = [opened, current.title, namespace, "Trivet"].filter(Boolean).join(" · ");
  }, [opened, current, namespace]);
  const first = useRef(route);
  useEffect(() => {
    if (route !== first.current && isFocusFree()) focusView();
  }, [route]);
  const isOfNamespace = View !== State;
  return (
    <>
      {needsKey && <KeyForm onAccepted={() => setNeedsKey(false)} />}
      {/* Hidden and not taken away: what somebody is writing there stays. */}
      <div hidden={needsKey}>
        <a class="skip" href="#main" onClick={focusMain}>
          Skip to content
        </a>
        <header class="bar">
          <a class="brand" href={href(namespace, "ask")}>
            <img src="/console/icon.svg" alt="" width="22" height="22" /> Trivet
          </a>
          <nav aria-label="Views">
            {VIEWS.map(({ id, title }) => (
              <a key={id} href={href(namespace, id)} aria-current={id === current.id ? "page" : undefined}>
                {title}
              </a>
            ))}
          </nav>
          <label class="namespace">
            <span>Namespace</span>
            <select value={namespace} onChange={(event) => go(href(event.currentTarget.value, current.id))}>
              {namespaces.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
              {namespaces.every(({ name }) => name !== namespace) && <option value={namespace}>{namespace}</option>}
            </select>
          </label>
          <ThemeSwitch />
        </header>
        <main id="main" tabIndex={-1}>
          {/* Status says it together with its own. */}
          {isOfNamespace && listing.error && <Failure error={listing.error} onRetry={listing.reload} />}
          {isOfNamespace && listing.data && !namespace && <Empty />}
          {(namespace || !isOfNamespace) && (
            <View
              key={isOfNamespace ? `${namespace}/${current.id}` : current.id}
              namespace={namespace}
              route={route}
              namespaces={namespaces}
              listing={listing}
            />
          )}
        </main>
      </div>
      <Toasts />
    </>
  );
}

/** Begin a view where a page would: at its heading, or in the graph at the entity that is selected. */
function focusView(): void {
  const place = ["#main .entity-card", "#main h1", "#main"].map((one) => document.querySelector<HTMLElement>(one));
  const target = place.find((one) => one !== null)!;
  target.tabIndex = -1;
  scrollTo(0, 0);
  target.focus();
}

function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Empty() {
  return (
    <section class="page">
      <h1>Nothing stored yet</h1>
      <p>
        A namespace appears with its first memory. <a href={href("notes", "memories", "", { page: "new" })}>Add one</a> to
        the namespace “notes”, or fill it from a file: <code>trivet import chat.json -n notes</code>. Then{" "}
        <button type="button" class="link" onClick={() => location.reload()}>
          reload this page
        </button>
        .
      </p>
    </section>
  );
}

const THEMES = ["auto", "light", "dark"] as const;

function ThemeSwitch() {
  const [theme, setTheme] = useStored<(typeof THEMES)[number]>(localStorage, "theme", "auto");
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const advance = (): void => setTheme(() => THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!);
  return (
    <button
      type="button"
      class="theme quiet"
      onClick={advance}
      title={`Theme: ${theme}`}
      aria-label={`Theme: ${theme}. Change`}
    >
      {theme === "auto" ? "◐" : theme === "light" ? "○" : "●"}
    </button>
  );
}
