"use strict";
/* The page of a game: shows the state that the server gives, and sends what is chosen. */
(() => {
  const find = (id) => document.getElementById(id);
  const LETTERS = { t: "take", p: "pass", i: "force" };
  const CARD = /\b([A2-7JQK][CDHS])\b/g;
  const SIGNS = { C: "♣", D: "♦", H: "♥", S: "♠" };
  const TARGETS = {  // what dropping a card there does
    "own-table": ["lay", "take"], "face-up": ["discard"], dead: ["discard"],
    "other-hand": ["give"], "other-table": ["give"],
  };
  let state = null, deciding = false, gone = false, dragged = [];

  // --- the server ---

  async function ask(path, options) {
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      gone = true;
      say("The server has stopped. Start it again and load this page anew.");
      return [false, {}];
    }
    const failed = { error: "The server failed at this" };
    return [response.ok, await response.json().catch(() => failed)];
  }

  async function look() {
    const [done, answer] = await ask("/state");
    if (done) show(answer);
  }

  /** Other tabs may decide, too. */
  async function watch() {
    if (!document.hidden && !deciding) await look();
    if (!gone) setTimeout(watch, 1000);
  }

  /** Send what was decided; what is clicked until the answer comes counts for nothing. */
  async function decide(what) {
    if (deciding || gone || !state) return;
    deciding = true;
    document.body.classList.add("busy");
    const body = JSON.stringify({ version: state.version, what });
    const headers = { "Content-Type": "application/json" };
    const [done, answer] = await ask("/decide", { method: "POST", headers, body });
    deciding = false;
    document.body.classList.remove("busy");
    if (!done) {
      if (answer.error) say(answer.error);
      return gone || look();
    }
    say("");
    show(answer);
  }

  // --- what is shown ---

  const say = (words) => { find("said").replaceChildren(...inked(words)); };

  /** Words in which the names of cards look like cards, the signs of suits as text and no emoji. */
  function inked(words) {
    return words.split(CARD).map((part, i) =>
      i % 2 ? element("b", { class: "DH".includes(part[1]) ? "red" : "black" }, signed(part)) : part);
  }

  const signed = (name) => `${name[0]}${SIGNS[name[1]]}\ufe0e`;

  /** One item for all that somebody did in a row. */
  function told(lines) {
    const items = [];
    for (const [who, what] of lines) {
      const last = items.at(-1);
      if (last && last.who === who) last.told.push(", ", ...inked(what));
      else items.push({ who, told: inked(what) });
    }
    return items.map((item) => element("li", {}, item.who ? element("bdi", {}, item.who) : "", " ", ...item.told));
  }

  /** How likely an agent would do what; what is certain has no number. */
  function chances(shares) {
    const likely = Object.entries(shares).filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]);
    if (likely.length === 1) return element("p", {}, ...inked(likely[0][0]));
    const items = likely.map(([name, share]) => {
      const bar = element("meter", { min: 0, max: 1, value: share, "aria-hidden": "true" });
      return element("li", {}, element("span", {}, ...inked(name)), bar, `${Math.round(100 * share)} %`);
    });
    return element("ul", { class: "chances" }, ...items);
  }

  function show(next) {
    if (state && next.version <= state.version) return;  // a look may be slower than a decision
    const first = state === null, after = next.after;
    state = next;
    find("heading").replaceChildren("Conquian against ", element("bdi", {}, state.opponent));
    find("rules").textContent = state.rules;
    find("news").firstElementChild.replaceChildren(...told(state.story.slice(-state.news)));
    find("news").scrollTop = find("news").scrollHeight;
    find("story").lastElementChild.replaceChildren(...told(state.story));
    showTable(after);
    showTools();
    showEnd(after);
    if (first) (find("table").querySelector("[data-action]") ?? find("new")).focus();
  }

  function showTable(after) {
    const { view, seats, headline, actions } = state, table = find("table");
    const prompt = state.prompt.replace(CARD, signed);
    const playing = table.contains(document.activeElement);
    endDrag();  // what was dragged may be gone
    drawTable(table, view, after ? after.other : null, { seats, headline, prompt, actions, choose: decide });
    for (const face of table.querySelectorAll(".slot .card, [data-place=face-up] .card")) {
      face.draggable = offers(face).length > 0;
    }
    if (playing && after) queueMicrotask(() => find("new").focus());
  }

  function showTools() {
    find("tools").hidden = state.after !== null;
    find("undo").hidden = state.undo === null;
    find("undo").disabled = !state.undo;
    find("hint").hidden = state.adviser === null;
    const hinted = Object.keys(state.hint).length > 0;
    find("hint").disabled = hinted;
    find("advice").replaceChildren(...hinted ? [element("bdi", {}, state.adviser), " would", chances(state.hint)] : []);
  }

  function showEnd(after) {
    const { result = "", saved = "", thoughts = [] } = after ?? {};
    find("after").hidden = after === null;
    find("result").textContent = result;
    find("saved").textContent = saved;
    find("thoughts").hidden = thoughts.length === 0;
    const [title, list] = find("thoughts").children;
    title.replaceChildren("What ", element("bdi", {}, state.opponent), " thought");
    list.replaceChildren(...thoughts.map(([what, shares]) => {
      const sure = Math.max(...Object.values(shares)) >= 0.995;
      return element("li", {}, ...inked(what), sure ? "" : chances(shares));
    }));
  }

  // --- cards that are dragged ---

  /** What can be done with a card: the buttons of its slot, or that of taking it. */
  function offers(face) {
    const slot = face.closest(".slot");
    return slot ? [...slot.querySelectorAll("[data-action]")] : [...find("table").querySelectorAll("[data-verb=take]")];
  }

  function target(event) {
    const place = event.target.closest?.("[data-place]");
    const verbs = TARGETS[place?.dataset.place] ?? [];
    return { place, button: dragged.find((each) => verbs.includes(each.dataset.verb)) };
  }

  function endDrag() {
    dragged = [];
    find("table").querySelectorAll(".target").forEach((place) => place.classList.remove("target"));
  }

  function listen() {
    const table = find("table");
    table.addEventListener("dragstart", (event) => {
      dragged = offers(event.target.closest(".card"));
      event.dataTransfer.setData("text/plain", "");
      const verbs = dragged.map((each) => each.dataset.verb);
      for (const place of table.querySelectorAll("[data-place]")) {
        place.classList.toggle("target", (TARGETS[place.dataset.place] ?? []).some((verb) => verbs.includes(verb)));
      }
    });
    table.addEventListener("dragover", (event) => { if (target(event).button) event.preventDefault(); });
    table.addEventListener("drop", (event) => {
      const { button } = target(event);
      if (button) {
        event.preventDefault();
        decide(Number(button.dataset.action));
      }
    });
    table.addEventListener("dragend", endDrag);
    find("hint").addEventListener("click", () => decide("hint"));
    find("undo").addEventListener("click", () => decide("undo"));
    find("new").addEventListener("click", () => decide("new"));
    document.addEventListener("keydown", key);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && !gone) look(); });
  }

  // --- keys ---

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const letter = event.key.toLowerCase();
    const button = LETTERS[letter]
      ? find("table").querySelector(`[data-verb=${LETTERS[letter]}]`)
      : document.querySelector(`button[data-key="${CSS.escape(letter)}"]`);
    if (button && button.offsetParent) button.click();
    else if (letter === "arrowright" || letter === "arrowleft") step(event, letter === "arrowright" ? 1 : -1);
  }

  /** From one action to the next. */
  function step(event, by) {
    const all = [...find("table").querySelectorAll("button[data-action]")];
    if (!all.length) return;
    const now = all.indexOf(document.activeElement);
    all[now < 0 ? 0 : (now + by + all.length) % all.length].focus();
    event.preventDefault();
  }

  listen();
  watch();
})();
