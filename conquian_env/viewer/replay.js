"use strict";
/* The replay of some games: the data of page.py, the table of table.js, and how to step through. */

window.addEventListener("error", () => {
  document.getElementById("failed").hidden = false;
});

(() => {
  const find = (id) => document.getElementById(id);
  const { seat: firstSeat, games } = JSON.parse(find("data").textContent);
  const seats = ["0", "1", "open"];
  const now = { game: 0, ply: 0, seat: firstSeat };
  let views, items;

  // --- what there is ---

  /** The pictures of a seat, of which each but the first is kept as what has changed. */
  function unfold(changes) {
    let view = {};
    return changes.map((change) => (view = { ...view, ...change }));
  }

  const played = () => games[now.game];
  const last = () => played().plies.length;
  const bdi = (text) => element("bdi", {}, text);
  const sees = (seat) => now.seat === "open" || now.seat === String(seat);
  const signed = (number, digits) => (number > 0 ? "+" : "") + number.toFixed(digits).replace("-", "−");

  /** Who did what, as far as who looks may know at this ply. */
  function words({ seat, words, then, public: known }) {
    const deed = known && !sees(seat) ? known : words;
    return `seat ${seat} ${deed}` + (then ? `; ${then}` : "");
  }

  const start = () => played().start || "the cards are dealt";

  // --- a game ---

  function choose(game) {
    now.game = game;
    const { agents, rules, origin, version, result, plies } = played();
    views = played().views.map(unfold);
    find("game").value = game;
    find("players").replaceChildren(bdi(agents[0]), " – ", bdi(agents[1]));
    document.title = `${agents[0]} – ${agents[1]}: Conquian replay`;
    const ending = result === "*" ? "still in play" : `result ${result}`;
    find("about").replaceChildren(`${ending} · ${rules} · ${origin} · version `, bdi(version));
    find("slider").max = last();
    items = [null, ...plies].map((_, ply) => {
      const button = element("button", { type: "button" });
      button.addEventListener("click", () => go(ply));
      return button;
    });
    find("plies").replaceChildren(...items.map((button) => element("li", {}, button)));
  }

  function choosers() {
    const name = ({ agents, result }, i) => `${i + 1}: ${agents[0]} – ${agents[1]}, ${result}`;
    const option = (game, i) => element("option", { value: i }, name(game, i));
    find("game").append(...games.map(option));
    find("chooser").hidden = games.length === 1;
  }

  // --- a position ---

  function go(ply, seat = now.seat) {
    now.ply = Math.max(0, Math.min(last(), ply));
    now.seat = seat;
    const [bottom, top] = now.seat === "1" ? [1, 0] : [0, 1];
    const other = now.seat === "open" ? views[top][now.ply] : null;
    drawTable(find("table"), views[bottom][now.ply], other, { seats: played().agents });
    find("slider").value = now.ply;
    for (const button of document.querySelectorAll("[data-seat]")) {
      button.setAttribute("aria-pressed", button.dataset.seat === now.seat);
    }
    const done = now.ply ? words(played().plies[now.ply - 1]) : start();
    find("said").replaceChildren(element("b", {}, `${now.ply} of ${last()}`), ` ${done}`);
    notes();
    list();
    remember();
  }

  /** What a seat cannot know yet has a number and no words. */
  function list() {
    items.forEach((button, ply) => {
      const entry = ply ? played().plies[ply - 1] : null, open = now.seat === "open" || ply <= now.ply;
      const text = entry ? words(entry) : start();
      button.replaceChildren(element("span", { class: "number" }, ply), open ? text : "…");
      const mistake = open && entry?.note?.mistake && sees(entry.seat);
      if (mistake) button.append(element("span", { class: "mistake" }, signed(-entry.note.loss, 2)));
      button.setAttribute("aria-current", ply === now.ply ? "step" : "false");
    });
    const box = find("plies"), place = items[now.ply].offsetTop - box.offsetTop;
    box.scrollTop = place - box.clientHeight / 2;
  }

  // --- what was noted of the decision to come ---

  function notes() {
    const noted = played().plies.some(({ note }) => note), ply = played().plies[now.ply];
    find("notes").hidden = !noted;
    if (!noted) return;
    const parts = !ply ? [element("p", {}, "No action is left.")]
      : !sees(ply.seat) ? [element("p", {}, `What seat ${ply.seat} can choose is hidden from seat ${now.seat}.`)]
      : ply.note ? [...summary(ply), ...rows(ply.note)]
      : [element("p", {}, `Seat ${ply.seat} ${ply.words}${forced(ply) ? " (no choice)" : "; nothing is noted of it"}.`)];
    find("notes").replaceChildren(element("h2", {}, "To come"), ...parts);
  }

  const forced = ({ seat }) => views[seat][now.ply].legal_actions.length === 1;

  function summary({ seat, words, note }) {
    const lines = [element("p", {}, `Seat ${seat} ${words}.`)];
    if (note.mistake) {
      lines.push(element("p", { class: "gives-away" }, `Gives away ${note.loss.toFixed(2)} on the average.`));
    }
    if (note.value !== null && now.seat === "open") {
      lines.push(element("p", {}, `Open, with best play: ${signed(note.value, 0)}.`));
    }
    return lines;
  }

  /** A row for each legal action; values with the cards open are not for the eyes of one seat. */
  function rows({ rows: legal, agents }) {
    const means = legal.some(({ mean }) => mean !== null);
    const opened = now.seat === "open" && legal.some(({ open }) => open !== null);
    const best = Math.max(...legal.map(({ mean }) => mean ?? -Infinity));
    const heads = ["action", ...(means ? ["mean"] : []), ...(opened ? ["open"] : [])];
    const names = shortNames(agents);
    const table = element("table", {},
      element("thead", {}, element("tr", {},
        ...heads.map((head) => element("th", { scope: "col" }, head)),
        ...(agents.length ? [element("th", { scope: "col", class: "agents" }, "who would")] : []))),
      element("tbody", {}, ...legal.map((row) => {
        const made = element("tr", { "data-action": row.action, class: row.played ? "played" : null },
          element("th", { scope: "row" }, row.action));
        if (means) made.append(cell(row.mean, 2, row.mean === best ? "best" : null));
        if (opened) made.append(cell(row.open, 0, null));
        if (agents.length) made.append(element("td", { class: "agents" }, ...row.agents.flatMap(bar(agents, names))));
        return made;
      })));
    const legend = [
      ...(means ? ["mean: over deals that look the same to the seat"] : []),
      ...(opened ? ["open: with best play and all cards known"] : []),
      ...(means || opened ? ["+1 is won and −1 lost for the seat that acts"] : []),
      ...(agents.length ? ["%: how likely an agent is to do it, if at all"] : []),
    ].join("; ");
    const region = { class: "scroll", role: "region", tabindex: "0", "aria-label": "legal actions" };
    return [element("div", region, table), element("p", { class: "legend" }, `${legend}.`)];
  }

  const cell = (number, digits, kind) =>
    element("td", { class: kind }, number === null ? "?" : signed(number, digits));

  /** Classes without their modules, where that leaves no two alike. */
  function shortNames(agents) {
    const short = agents.map((agent) => /^[\w.]+:([A-Z]\w*)$/.exec(agent)?.[1] ?? agent);
    return short.map((name, i) => (short.indexOf(name) === short.lastIndexOf(name) ? name : agents[i]));
  }

  /** Makes a line for each agent that might do it. */
  const bar = (agents, names) => (share, i) => {
    if (share !== null && share < 0.005) return [];
    const filled = element("span", { class: "bar" });
    filled.style.width = `${100 * (share ?? 0)}%`;
    const said = share === null ? "?" : `${Math.round(100 * share)} %`;
    const pieces = names[i].split(/(?<=[:,=/])/).flatMap((piece) => [piece, element("wbr")]);
    const name = element("bdi", { title: agents[i] }, ...pieces);
    return [element("div", { class: "share" }, filled, name, element("span", { class: "percent" }, said))];
  };

  // --- the address, so that a position can be linked to: #GAME/PLY/SEAT ---

  let timer = null;
  const framed = location.protocol === "about:";

  function remember() {
    if (framed) return;
    clearTimeout(timer);
    timer = setTimeout(() => location.replace(`#${now.game + 1}/${now.ply}/${now.seat}`), 200);
  }

  function recall() {
    const [, game, ply, seat] = /^#(\d+)(?:\/(\d+))?(?:\/(0|1|open))?$/.exec(location.hash) ?? [];
    const chosen = Number(game ?? 1) - 1;
    choose(chosen in games ? chosen : 0);
    go(Number(ply ?? 0), seat ?? now.seat);
  }

  // --- the controls ---

  const steps = {
    first: () => go(0), back: () => go(now.ply - 1), forward: () => go(now.ply + 1), last: () => go(last()),
  };
  const keys = {
    Home: steps.first, ArrowLeft: steps.back, ArrowRight: steps.forward, End: steps.last,
    p: () => go(now.ply, seats[(seats.indexOf(now.seat) + 1) % 3]),
    1: () => go(now.ply, "0"), 2: () => go(now.ply, "1"), 3: () => go(now.ply, "open"),
  };

  function listen() {
    for (const [id, step] of Object.entries(steps)) find(id).addEventListener("click", step);
    find("slider").addEventListener("input", () => go(Number(find("slider").value)));
    find("game").addEventListener("change", () => {
      choose(Number(find("game").value));
      go(0);
    });
    for (const button of document.querySelectorAll("[data-seat]")) {
      button.addEventListener("click", () => go(now.ply, button.dataset.seat));
    }
    document.addEventListener("keydown", (event) => {
      const own = event.target.closest("select") || (event.target.closest("input, .scroll") && event.key.length > 1);
      if (own || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    });
    window.addEventListener("hashchange", () => {
      if (location.hash !== `#${now.game + 1}/${now.ply}/${now.seat}`) recall();
    });
  }

  choosers();
  listen();
  find("failed").hidden = true;
  document.querySelector("main").hidden = false;
  recall();
})();
