// The terminal of an agent: shows its screen as it is, and sends what is typed once the person has taken over.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
const WIDTH_OF_LETTER = 0.602; // of the height of the letters, in the fonts used
const NOT_ALLOWED = 1008;
const AGAIN_LATER = 1013; // why was told before it closed
const place = document.querySelector("#terminal");
const box = place.querySelector("[data-screen]");
const told = place.querySelector("[data-told]");
const people = place.querySelector("[data-people]");
const take = place.querySelector("[data-take]");
const letGo = place.querySelector("[data-let-go]");
const aloud = place.querySelector("[data-aloud]");
const barred = take.closest("fieldset")?.disabled ?? false;

let socket = null;
let wait = FIRST_WAIT;
let typing = false;
let lost = false;
let runs = false;
let waiting = [];
let fontSize = 13;

// xterm.js writes its own style sheets; with the nonce of the page the browser takes them, and no others.
const made = document.createElement;
document.createElement = function (name, ...more) {
  const found = made.call(document, name, ...more);
  if (String(name).toLowerCase() === "style") found.setAttribute("nonce", place.dataset.nonce);
  return found;
};
const { Terminal } = await import(place.dataset.module);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const term = new Terminal({
  cols: 80, rows: 24, scrollback: 0, disableStdin: true, fontSize, cursorBlink: false, minimumContrastRatio: 4.5,
  fontFamily: getComputedStyle(box).fontFamily,
  theme: { background: colour("--out-bg"), foreground: colour("--out-text"), cursor: colour("--out-text") },
});
term.open(box);
term.textarea.setAttribute("aria-label", "Its terminal");
term.textarea.tabIndex = -1;

const say = (text) => { if (told.textContent !== text) told.textContent = text; };
const send = (message) => { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };

function show() {
  take.hidden = typing;
  letGo.hidden = !typing;
  take.disabled = barred || !runs || lost;
  term.options.disableStdin = !typing;
  term.options.cursorBlink = typing;
  term.textarea.tabIndex = typing ? 0 : -1;
  place.classList.toggle("typing", typing);
  place.classList.toggle("away", lost || !runs);
}

function fit() {
  const wide = box.clientWidth / term.cols / WIDTH_OF_LETTER;
  const size = Math.max(10.5, Math.min(13, Math.floor(wide * 2) / 2)); // smaller cannot be read: a wide screen scrolls
  if (size !== fontSize) term.options.fontSize = fontSize = size;
}
addEventListener("resize", fit);

// ── what the city tells ──────────────────────────────────────────────────────────────────────────────────────────

function name(one) {
  return one.you ? "you" : one.who;
}

const heard = {
  hello() {
    wait = FIRST_WAIT;
    if (lost) say("Connected again. You watch; take over again to type.");
    lost = false;
  },
  screen({ columns, lines, rows, cursor, cursor_shown, application_keys }) {
    if (term.cols !== columns || term.rows !== lines) { term.resize(columns, lines); fit(); }
    const drawn = Object.entries(rows).map(([at, text]) => `\x1b[${Number(at) + 1};1H\x1b[0m${text}\x0f\x1b[0m\x1b[K`);
    const where = `\x1b[${cursor[1] + 1};${cursor[0] + 1}H\x1b[?25${cursor_shown ? "h" : "l"}\x1b[?1${application_keys ? "h" : "l"}`;
    term.write(`\x1b)0\x1b[?7l${drawn.join("")}${where}`);
  },
  people({ people: all, attached }) {
    const mine = all.some((one) => one.you && one.typing);
    if (typing && !mine) {
      const other = all.find((one) => one.typing);
      say(other ? `${name(other)} has taken over; you watch.` : "You have let go; you watch.");
    }
    if (!typing && mine) { say("You type. Shift Escape lets go."); typing = true; show(); term.focus(); }
    typing = mine;
    const words = all.map((one) => `${name(one)} ${one.you ? (one.typing ? "type" : "watch") : one.typing ? "types" : "watches"}`);
    if (attached) words.push(`${attached} at a terminal of ${attached > 1 ? "their" : "its"} own`);
    people.textContent = words.join(", ");
  },
  began({ again }) {
    runs = true;
    if (again) say("A session runs again.");
    else if (!told.textContent) say("You watch.");
  },
  ended() {
    runs = false;
    say("Nothing runs in it: its session has ended, or has not begun.");
  },
  trouble({ said }) { say(said); },
  refused({ said }) { say(said); },
};

function connect() {
  const from = place.dataset.socket;
  socket = new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${from}`);
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(data);
    heard[message.kind]?.(message);
    show();
    place.dataset.state = lost ? "lost" : typing ? "typing" : runs ? "watching" : "ended";
  });
  socket.addEventListener("close", ({ code }) => {
    typing = false;
    lost = true;
    place.dataset.state = "lost";
    if (code === NOT_ALLOWED) say("You may not watch it any more. Sign in again.");
    else {
      if (code !== AGAIN_LATER) say("The connection is lost; what you see may be old. Connecting again…");
      setTimeout(connect, wait);
      wait = Math.min(LONGEST_WAIT, wait * 2);
    }
    show();
  });
}

// ── what the person does ─────────────────────────────────────────────────────────────────────────────────────────

take.addEventListener("click", () => send({ kind: "take" }));
letGo.addEventListener("click", () => { send({ kind: "let-go" }); take.focus(); });
aloud.addEventListener("change", () => { term.options.screenReaderMode = aloud.checked; });
term.onData((data) => {
  if (!typing) return;
  if (!waiting.length) queueMicrotask(() => { send({ kind: "keys", data: waiting.join("") }); waiting = []; });
  waiting.push(data);
});
term.attachCustomKeyEventHandler((event) => {
  if (event.key !== "Escape" || !event.shiftKey) return true;
  if (event.type === "keydown") { send({ kind: "let-go" }); letGo.hidden = true; take.hidden = false; take.focus(); }
  return false;
});
box.addEventListener("paste", (event) => {
  event.preventDefault();
  event.stopImmediatePropagation();
  const data = event.clipboardData?.getData("text/plain") ?? "";
  if (typing && data) send({ kind: "paste", data: data.slice(0, 16000) });
}, true);
box.addEventListener("keydown", (event) => { if (typing) event.stopPropagation(); }); // no key of the page

place.hidden = false;
show();
fit();
connect();
