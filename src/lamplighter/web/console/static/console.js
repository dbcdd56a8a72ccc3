// Keeps a page fresh: signals say what changed, the page is asked for again, and what differs is put in its place.
// Everything works without this script; it adds live regions, keys and times that count.

const PREFIX = (document.body.dataset.prefix ?? "/").replace(/\/$/, ""); // behind a proxy the city may lie below a path
const EVERYTHING = "*";
const REST = 1000; // the least time between two refetches; longer where the server is slow to answer
const BENEATH = 30000; // asked for again after so long without a signal, in case one was lost
const LOST_AFTER = 12000;
const fresh = document.querySelector("#freshness");
const word = fresh?.querySelector("[data-fresh]");

let updated = Date.now();
let serverAhead = Date.parse(document.body.dataset.now ?? "") - Date.now() || 0;
let connected = false;
let trouble = "";
let held = false;
let wanted = new Set();
let lastFetch = 0;
let rest = REST;
let timer = 0;
let asking = false;

// ── freshness ────────────────────────────────────────────────────────────────────────────────────────────────────

const span = (seconds) => {
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= unit) return `${Math.floor(seconds / unit)} ${name}`;
  }
  return `${Math.floor(seconds)} s`;
};

const coming = (away) => {
  const whole = Math.ceil(away);
  const seconds = whole >= 600 ? whole - (whole % 60) : whole;
  for (const [unit, name, below, part] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    const rest = Math.floor((seconds % unit) / below);
    if (seconds >= unit) return `in ${Math.floor(seconds / unit)} ${name}${rest ? ` ${rest} ${part}` : ""}`;
  }
  return `in ${seconds} s`;
};

function tell() {
  const now = Date.now();
  if (fresh && word) {
    const age = (now - updated) / 1000;
    const said = age < 2 ? "updated now" : `updated ${span(age)} ago`;
    const lost = trouble !== "" || (!connected && age * 1000 > LOST_AFTER);
    fresh.className = `fresh ${lost ? "lost" : held ? "held" : connected ? "live" : ""}`;
    word.textContent = lost ? `${trouble || "connection lost"}, ${said}` : held ? `held, ${said}` : connected ? `live, ${said}` : `connecting, ${said}`;
    document.body.classList.toggle("stale", lost);
  }
  for (const time of document.querySelectorAll("time[data-at]")) {
    const at = new Date(time.dateTime);
    if (time.textContent !== time.title || Number.isNaN(at.getTime())) continue;
    const [today, year] = [new Date().toDateString() === at.toDateString(), new Date().getFullYear() === at.getFullYear()];
    const date = today ? {} : { month: "short", day: "numeric", ...(year ? {} : { year: "numeric" }) };
    time.textContent = at.toLocaleString(undefined, { ...date, hour: "numeric", minute: "2-digit" });
  }
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const seconds = (now + serverAhead - at) / 1000;
    const text = Math.abs(seconds) < 2 ? "now" : seconds > 0 ? `${span(seconds)} ago` : coming(-seconds);
    if (time.textContent !== text) time.textContent = text;
    const title = new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    if (time.title !== title) time.title = title;
  }
}

// ── putting what is new in its place ─────────────────────────────────────────────────────────────────────────────

function keyOf(node) {
  return node.nodeType === 1 && node.id ? node.id : null;
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function morphAttributes(old, now) {
  for (const { name, value } of now.attributes) {
    if (name === "open" && old.nodeName === "DETAILS") continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (now.hasAttribute(name)) continue;
    if (name === "open" || (name === "hidden" && old.hasAttribute("data-row"))) continue; // a person's doing
    old.removeAttribute(name);
  }
}

function morph(old, now) {
  if (old.nodeType === 3) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  if (old.nodeType !== 1) return;
  const at = old.classList.contains("at");
  morphAttributes(old, now);
  if (at) old.classList.add("at");
  if (old.nodeName === "INPUT" || old.nodeName === "TEXTAREA") return; // what a person types stays
  if (old.nodeName === "TIME" && old.dateTime === now.dateTime) return; // its text is ours
  morphChildren(old, now);
}

function morphChildren(old, now) {
  const keyed = new Map();
  for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let next = old.firstChild;
  for (const child of [...now.childNodes]) {
    const key = keyOf(child);
    let found = key ? keyed.get(key) : null;
    if (!found && next && !keyOf(next) && alike(next, child)) found = next;
    if (found && alike(found, child)) {
      if (found === next) next = next.nextSibling;
      else old.insertBefore(found, next);
      morph(found, child);
    } else {
      old.insertBefore(document.importNode(child, true), next);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function followOutput(region) {
  return [...region.querySelectorAll(".output")].map((box) => [box, box.scrollHeight - box.scrollTop - box.clientHeight < 24]);
}

const topicsOf = (region) => (region.dataset.live ?? "").split(" ");
const regions = () => [...document.querySelectorAll("[data-live]")];

// What is new does not push down what is read: below the top of a list, or with a box ticked, it waits behind a button.
let letIn = false;

function newRows(page) {
  const button = document.querySelector("[data-newer]");
  const pushed = new Set();
  let count = 0;
  const reads = scrollY > 160 || document.querySelector("main [data-row].at, main .box input:checked");
  for (const region of reads && !letIn && button ? regions() : []) {
    if (region.getBoundingClientRect().top > 0 && !region.querySelector("[data-row].at, .box input:checked")) continue;
    const here = new Set([...region.querySelectorAll("[data-row][id]")].map((row) => row.id));
    const added = [...(page.getElementById(region.id)?.querySelectorAll("[data-row][id]") ?? [])].filter((row) => !here.has(row.id)).length;
    if (here.size && added) { pushed.add(region); count += added; }
  }
  letIn = false;
  if (button) {
    button.parentElement.hidden = !count;
    if (count) button.textContent = `${count} new`;
  }
  return pushed;
}
document.querySelector("[data-newer]")?.addEventListener("click", (event) => {
  letIn = true;
  event.target.parentElement.hidden = true;
  scrollTo(0, 0);
  wanted.add(EVERYTHING);
  lastFetch = 0;
  soon();
});

async function refetch() {
  if (asking) return;
  asking = true;
  const topics = wanted;
  wanted = new Set();
  lastFetch = Date.now();
  try {
    const answer = await fetch(document.body.dataset.refetch ?? location.href, { headers: { Accept: "text/html" }, cache: "no-store", redirect: "manual" });
    if (answer.type === "opaqueredirect") {
      location.assign(`${PREFIX}/sign-in?next=${encodeURIComponent(location.pathname.slice(PREFIX.length) + location.search)}`);
      return;
    }
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const served = page.body?.dataset.now;
    if (!answer.ok || !served) {
      trouble = answer.status === 404 ? "this is gone" : "unavailable";
      return;
    }
    trouble = "";
    const pushed = newRows(page);
    for (const region of regions()) {
      const found = page.getElementById(region.id);
      if (!found || pushed.has(region)) continue;
      const boxes = followOutput(region);
      morph(region, found);
      for (const [box, bottom] of boxes) if (bottom) box.scrollTop = box.scrollHeight;
    }
    if (document.title !== page.title) document.title = page.title;
    serverAhead = Date.parse(served) - Date.now();
    updated = Date.now();
    filterRows();
    showChosen();
  } catch {
    trouble = "connection lost";
    for (const topic of topics) wanted.add(topic);
  } finally {
    asking = false;
    rest = Math.max(REST, 4 * (Date.now() - lastFetch));
    tell();
  }
}

const selecting = () => {
  const chosen = document.getSelection();
  return chosen && !chosen.isCollapsed && document.querySelector("main")?.contains(chosen.anchorNode);
};

function soon() {
  if (timer || held || document.hidden || !wanted.size) return;
  timer = setTimeout(() => {
    timer = 0;
    if (held || document.hidden) return;
    if (selecting()) return void (timer = setTimeout(() => { timer = 0; soon(); }, REST));
    refetch().then(soon);
  }, Math.max(0, lastFetch + rest - Date.now()));
}

function changed(topics) {
  const all = topics.includes(EVERYTHING);
  const shown = new Set(regions().flatMap(topicsOf));
  for (const topic of topics) if (all || shown.has(topic)) wanted.add(topic);
  soon();
}

// ── one stream for all tabs of a browser ─────────────────────────────────────────────────────────────────────────

const others = "BroadcastChannel" in window ? new BroadcastChannel(`lamplighter${PREFIX}`) : null;
others?.addEventListener("message", ({ data }) => {
  if (data.connected !== undefined) setConnected(data.connected);
  if (data.topics) changed(data.topics);
  if (data.ask && source) others.postMessage({ connected });
});

let source = null;

function setConnected(now) {
  if (now && !connected) changed([EVERYTHING]); // there was a gap: everything is asked for again
  connected = now;
  tell();
}

function listen() {
  return new Promise((ended) => {
    source = new EventSource(`${PREFIX}/api/v1/stream`);
    const told = (message) => others?.postMessage(message);
    source.addEventListener("hello", () => { setConnected(true); told({ connected: true }); });
    source.addEventListener("changed", ({ data }) => {
      const { topics } = JSON.parse(data);
      changed(topics);
      told({ topics });
    });
    source.addEventListener("error", () => {
      setConnected(false);
      told({ connected: false });
      if (source.readyState === EventSource.CLOSED) setTimeout(ended, 3000);
    });
    addEventListener("pagehide", () => { source.close(); ended(); }, { once: true });
  });
}

async function lead() {
  if (navigator.locks) await navigator.locks.request(`lamplighter stream${PREFIX}`, listen);
  else await listen();
  source = null;
  setTimeout(lead, 1000);
}

if (regions().length) {
  others?.postMessage({ ask: true });
  lead();
  setInterval(tell, 1000);
  const last = new Map();
  setInterval(() => {
    const now = Date.now();
    for (const region of regions()) {
      const every = Number(region.dataset.every ?? 0) * 1000 || BENEATH;
      if (now - Math.max(last.get(region.id) ?? 0, updated) >= every) {
        last.set(region.id, now);
        wanted.add(topicsOf(region)[0]);
      }
    }
    if (trouble && now - lastFetch > 3000) wanted.add(EVERYTHING);
    soon();
  }, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { wanted.add(EVERYTHING); soon(); } });
}
tell();
const pages = document.querySelector("#nav");
const here = pages?.querySelector("[aria-current]");
if (here) pages.scrollLeft += here.getBoundingClientRect().left - (pages.clientWidth - here.offsetWidth) / 2; // on a phone it is a line that scrolls
for (const box of document.querySelectorAll(".output")) box.scrollTop = box.scrollHeight;

// ── forms: a button is pressed once ──────────────────────────────────────────────────────────────────────────────

let sending = false;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) return void event.preventDefault();
  form.dataset.sent = "1";
  sending = true; // no key reaches the next item while this one is on its way
  (event.submitter ?? form.querySelector("button"))?.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", () => {
  sending = false;
  for (const form of document.forms) delete form.dataset.sent;
  for (const button of document.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
});

// ── a form that is checked as one types ──────────────────────────────────────────────────────────────────────────

const sheet = document.querySelector("form[data-preview]");
let typed = 0;
let checking = false;

async function check() {
  if (checking) return void (typed = setTimeout(check, 150));
  checking = true;
  try {
    const body = new URLSearchParams(new FormData(sheet));
    const answer = await fetch(sheet.dataset.preview, { method: "POST", body, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("#preview, [data-problem]")) {
      const found = page.getElementById(old.id);
      if (found) morph(old, found);
    }
    for (const group of sheet.querySelectorAll("details")) if (group.querySelector(".wrong:not(:empty)")) group.open = true;
  } catch {
    trouble = "connection lost";
    tell();
  } finally {
    checking = false;
  }
}
sheet?.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(check, 250); });

// ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const places = { h: "/", i: "/inbox", r: "/runs", a: "/automations", s: "/agents", c: "/calendar", b: "/beads", e: "/events", d: "/deliveries", n: "/nodes", ",": "/settings" };
let chord = 0;

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);

function move(step) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.classList.contains("at"));
  const next = now < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, now + step));
  all[now]?.classList.remove("at");
  all[next].classList.add("at");
  (all[next].querySelector("[data-open]") ?? all[next].querySelector("a[href]"))?.focus({ preventScroll: true });
  all[next].scrollIntoView({ block: "nearest" });
}

// ── going anywhere by a few letters ──────────────────────────────────────────────────────────────────────────────

const palette = document.querySelector("#palette");
const letters = palette?.querySelector("input");
let sought = 0;
let asked = 0;

function choose(step) {
  const all = [...palette.querySelectorAll("[data-hit]:not(:disabled)")];
  const now = all.findIndex((one) => one.classList.contains("chosen"));
  all[now]?.classList.remove("chosen");
  const next = all[Math.max(0, Math.min(all.length - 1, now + step))];
  next?.classList.add("chosen");
  next?.scrollIntoView({ block: "nearest" });
}

async function seek() {
  const mine = ++asked;
  try {
    const answer = await fetch(`${PREFIX}/search?q=${encodeURIComponent(letters.value)}`, { headers: { Accept: "text/html" }, redirect: "error" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return; // a later one was asked for since
    const found = page.querySelector("#found");
    palette.querySelector("#hits").replaceChildren(...(found ? [...found.childNodes].map((one) => document.importNode(one, true)) : ["unavailable"]));
    choose(1);
  } catch {
    if (mine === asked) palette.querySelector("#hits").textContent = "connection lost";
  }
}

function openPalette() {
  if (palette.open) return void palette.close();
  document.querySelector("dialog[open]")?.close();
  palette.showModal();
  letters.value = "";
  seek();
}
letters?.addEventListener("input", () => { clearTimeout(sought); sought = setTimeout(seek, 120); });
palette?.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(event.key === "ArrowDown" ? 1 : -1); }
  if (event.key === "Enter" && event.target === letters) { event.preventDefault(); palette.querySelector(".chosen")?.click(); }
});
document.querySelector("[data-palette]")?.addEventListener("focus", (event) => { event.target.blur(); openPalette(); });

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && palette) { event.preventDefault(); return openPalette(); }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (event.key === "Escape") for (const menu of document.querySelectorAll(".menu[open]")) menu.open = false;
  if (event.key === "Escape" && typing) return void typing.blur();
  if (typing || document.querySelector("dialog[open]")) return;
  if (document.body.dataset.keys === "off" && event.key !== "?") return;
  if (chord && Date.now() - chord < 1500) {
    chord = 0;
    if (places[event.key]) { event.preventDefault(); location.assign(PREFIX + places[event.key]); }
    return;
  }
  const button = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === event.key && !one.disabled);
  if (button) { event.preventDefault(); if (!sending) button.click(); return; }
  const keys = {
    g: () => { chord = Date.now(); },
    j: () => move(1),
    k: () => move(-1),
    f: () => location.assign(`${PREFIX}/inbox/focus`),
    x: () => chooseRow(),
    X: () => choosePage(),
    "?": () => document.querySelector("#keys")?.showModal(),
    "/": () => document.querySelector("[data-filter]")?.focus(),
    ".": () => { held = !held; tell(); if (!held) { wanted.add(EVERYTHING); soon(); } },
  };
  if (remarks && ofLines[event.key]) { event.preventDefault(); return ofLines[event.key](); }
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// ── choosing runs: the choice outlives refetches and leads across pages ──────────────────────────────────────────

const chooser = document.querySelector("form[data-choose]");
const KEPT = "lamp-chosen";
const chosen = new Set(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]"));
let lastBox = null;

const boxes = () => [...(chooser?.querySelectorAll('input[name="run"][type="checkbox"]') ?? [])];

function keepChosen(changes) {
  for (const box of changes) {
    if (box.checked) chosen.add(box.value);
    else chosen.delete(box.value);
  }
  sessionStorage.setItem(KEPT, JSON.stringify([...chosen]));
  showChosen();
}

function showChosen() {
  if (!chooser) return;
  const here = boxes();
  const all = chooser.querySelector("[data-choose-all]")?.checked ?? false;
  for (const box of here) {
    box.checked = all || chosen.has(box.value);
    box.disabled = all;
  }
  const page = chooser.querySelector("[data-choose-page]");
  const ticked = here.filter((box) => box.checked).length;
  if (page) {
    page.hidden = false;
    page.disabled = all;
    page.checked = ticked > 0 && ticked === here.length;
    page.indeterminate = ticked > 0 && ticked < here.length;
  }
  const away = [...chosen].filter((run) => !here.some((box) => box.value === run)).length;
  const said = chooser.querySelector("[data-chosen]");
  const text = all ? "All that fit" : chosen.size ? `${chosen.size} chosen${away ? `, ${away} of them not on this page` : ""}` : "Tick runs, then";
  if (said && said.textContent !== text) said.textContent = text;
  const go = chooser.querySelector("[data-go]");
  if (go && !go.title) go.disabled = !all && chosen.size === 0;
  const none = chooser.querySelector("[data-choose-none]");
  if (none) none.hidden = all || chosen.size === 0;
}

function chooseRow() {
  const box = document.querySelector('[data-row].at input[name="run"]');
  if (box && !box.disabled) { box.checked = !box.checked; keepChosen([box]); }
}

function choosePage() {
  const here = boxes().filter((box) => !box.disabled);
  const every = here.every((box) => box.checked);
  for (const box of here) box.checked = !every;
  keepChosen(here);
}

chooser?.addEventListener("click", (event) => {
  const box = event.target;
  if (box.name !== "run") return;
  const here = boxes();
  const [from, to] = [here.indexOf(lastBox), here.indexOf(box)];
  if (event.shiftKey && from >= 0) {
    const between = here.slice(Math.min(from, to), Math.max(from, to) + 1);
    for (const one of between) one.checked = box.checked;
    keepChosen(between);
  }
  lastBox = box;
});
chooser?.addEventListener("change", ({ target }) => {
  if (target.name === "run") keepChosen([target]);
  else if (target.matches("[data-choose-page]")) choosePage();
  else showChosen();
});
chooser?.querySelector("[data-choose-none]")?.addEventListener("click", () => {
  chosen.clear();
  keepChosen([]);
});
chooser?.addEventListener("submit", () => {
  for (const old of chooser.querySelectorAll("[data-carried]")) old.remove();
  const here = new Set(boxes().map((box) => box.value));
  for (const run of chosen) {
    if (here.has(run)) continue;
    const carried = Object.assign(document.createElement("input"), { type: "hidden", name: "run", value: run });
    carried.dataset.carried = "";
    chooser.append(carried);
  }
});
if (document.querySelector("[data-chosen-done]")) sessionStorage.removeItem(KEPT);
addEventListener("pageshow", showChosen);

// ── remarks on lines of what a run changed ───────────────────────────────────────────────────────────────────────

const remarks = document.querySelector("form[data-remarks]");
const blank = document.querySelector("template#remark");

function countRemarks() {
  const told = remarks.querySelector("[data-remarked]");
  const count = [...remarks.querySelectorAll('textarea[name="remark"]')].filter((one) => one.value.trim()).length;
  if (count) told.textContent = `${count} ${count === 1 ? "remark" : "remarks"}. The run goes on with its work, and is told each with its file and line.`;
}

remarks?.addEventListener("click", (event) => {
  if (event.target.matches("[data-drop]")) {
    event.target.closest(".remark-box").remove();
    return countRemarks();
  }
  const line = event.target.closest("li[data-line]");
  if (!line || String(document.getSelection()) || remarks.querySelector("fieldset[disabled]")) return;
  if (!line.nextElementSibling?.matches(".remark-box")) {
    const box = document.importNode(blank.content, true).firstElementChild;
    const name = line.closest(".file").querySelector('input[name="file"]').value;
    box.querySelector('[name="file"]').value = name;
    box.querySelector('[name="line"]').value = line.dataset.line;
    box.querySelector('[name="quoted"]').value = line.textContent;
    box.querySelector("textarea").setAttribute("aria-label", `Remark on line ${line.dataset.line} of ${name}`);
    line.after(box);
  }
  line.nextElementSibling.querySelector("textarea").focus();
});
remarks?.addEventListener("input", countRemarks);

// Keys lead through the lines that were changed, as j and k lead through the files.
function moveLine(step) {
  const all = [...remarks.querySelectorAll("li.line-add[data-line], li.line-del[data-line]")].filter((one) => one.offsetParent !== null);
  const now = all.findIndex((one) => one.classList.contains("here"));
  const next = all[now < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, now + step))];
  all[now]?.classList.remove("here");
  next?.classList.add("here");
  next?.scrollIntoView({ block: "nearest" });
}
const ofLines = { n: () => moveLine(1), p: () => moveLine(-1), r: () => remarks.querySelector("li.here")?.click() };

// ── proposals for the bar that filters runs ──────────────────────────────────────────────────────────────────────

const bar = document.querySelector("[data-values]");

function propose() {
  const values = JSON.parse(bar.dataset.values);
  const [, before, term] = /^(.*?)(\S*)$/s.exec(bar.value);
  const [, sign, field, colon, part] = /^(-?)([^:]*)(:?)(.*)$/s.exec(term);
  const words = colon ? (values[field] ?? []).map((one) => `${field}:${/[\s,]/.test(one) ? `"${one}"` : one}`) : Object.keys(values).map((one) => `${one}:`);
  const fitting = words.filter((one) => one.startsWith(colon ? `${field}:${part}` : field)).slice(0, 12);
  document.querySelector("#proposals").replaceChildren(...fitting.map((one) => Object.assign(document.createElement("option"), { value: before + sign + one })));
}
bar?.addEventListener("input", propose);
bar?.addEventListener("focus", propose);

// ── a filter of the rows that are on the page ────────────────────────────────────────────────────────────────────

function filterRows() {
  const form = document.querySelector("form[data-local]");
  const text = form?.querySelector("input").value.toLowerCase().trim() ?? "";
  if (!form) return;
  for (const row of document.querySelectorAll(`#${form.dataset.local} [data-row]`)) {
    row.hidden = text !== "" && !row.textContent.toLowerCase().includes(text);
  }
}
document.querySelector("form[data-local]")?.addEventListener("input", filterRows);
document.querySelector("form[data-local]")?.addEventListener("submit", (event) => event.preventDefault());

// ── small things ─────────────────────────────────────────────────────────────────────────────────────────────────

document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(target)) menu.open = false;
  const command = target.closest(".command");
  if (!command || !navigator.clipboard) return; // on plain HTTP it is selected whole, which is enough to copy it
  navigator.clipboard.writeText(command.textContent).then(() => {
    command.classList.add("copied");
    setTimeout(() => command.classList.remove("copied"), 1500);
  }, () => {});
});
if (navigator.clipboard) document.body.classList.add("can-copy");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.includes(`lamp-zone=${encodeURIComponent(zone)}`)) {
  document.cookie = `lamp-zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  if (document.querySelector("#week")) { wanted.add(EVERYTHING); soon(); }
}
