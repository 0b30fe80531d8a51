"use strict";
/* The table of a game as people lay cards, drawn from views alone: the values of picture() in
   table.py. No rule is known here: what lies together and what may be done comes with the view.
   The page holds sprite(), whose symbols the cards are. */

/** An element; attributes that are null are left out, texts among the children stay texts. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/**
 * Draw the table into `root`, in place of what is there.
 *
 * `view` is the picture of the seat at the bottom; with `other`, that of the seat at the top, both
 * hands are open. Options, all of them optional:
 *   actions  ids that can be chosen now: buttons, named in words; cards of a single action are
 *            clicked too. Without them the cards that may be laid are marked only.
 *   choose   is called with the id that was chosen.
 *   seats    names of seat 0 and seat 1.
 *   headline, prompt  in place of the words of the view.
 *
 * Every card has data-card ("7D" or "back"), every place data-place: other-hand, other-table,
 * stock, face-up, dead, own-table, own-hand. A button has data-action (the id) and data-verb (pass,
 * take, force, lay, discard or give); those of a card lie in its slot (.slot[data-card]). The focus
 * stays on the same action, or goes to the first one, if it was in the table before.
 */
const drawTable = (() => {
  const RANKS = "A234567JQK", SUITS = "CDHS";
  const SVG = "http://www.w3.org/2000/svg";

  const cardName = (id) => RANKS[id % 10] + SUITS[Math.floor(id / 10)];

  function drawing(symbol, size, label) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", size);
    if (label) {
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", label);
    } else {
      svg.setAttribute("aria-hidden", "true");
    }
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#${symbol}`);
    svg.append(use);
    return svg;
  }

  function card(id) {
    const name = id === null ? "back" : cardName(id);
    const svg = drawing(`card-${name}`, "0 0 72 100", id === null ? null : name);
    return element("span", { class: "card", "data-card": name }, svg);
  }

  function smallCard(id) {
    const name = cardName(id);
    const svg = drawing(`small-${name}`, "0 0 38 25", name);
    return element("span", { class: "card small", "data-card": name }, svg);
  }

  /** What can be done: each action with its verb, the card it names, and how it is called. */
  function choices(views, ids) {
    const names = Object.assign({}, ...views.map((view) => view.names));
    const { phase, face_up: shown } = views[0];
    return ids.map((id) => {
      const [word, named = null] = names[id].split(" ");
      const verb = phase === "give" ? "give" : word;
      const about = named ?? (word === "pass" || shown === null ? "" : cardName(shown));
      const text = verb === "force" ? "insist" : verb;
      const label = `${verb === "force" ? "insist on" : verb} ${about}`.trim();
      return { id, verb, card: named, text, label };
    });
  }

  function button(choice, choose) {
    const made = element("button", {
      type: "button", "data-action": choice.id, "data-verb": choice.verb, "aria-label": choice.label,
    }, choice.text);
    made.addEventListener("click", () => choose(choice.id));
    return made;
  }

  /** A card in hand with its buttons; where there is one alone, a click on the card does it. */
  function slot(id, marked, able, choose) {
    const here = id === null ? [] : able.filter((choice) => choice.card === cardName(id));
    const face = card(id);
    face.classList.toggle("marked", marked.has(id));
    if (!here.length) return face;
    if (here.length === 1) face.addEventListener("click", () => choose(here[0].id));
    const made = element("span", { class: "slot", "data-card": cardName(id) }, face);
    made.classList.toggle("usable", here.length === 1);
    made.append(...here.map((choice) => button(choice, choose)));
    return made;
  }

  function place(name, label, kind, ...content) {
    const head = element("h3", {}, ...label);
    return element("section", { class: kind, "data-place": name }, head, ...content);
  }

  function seatName(seat, options) {
    const name = options.seats ? options.seats[seat] : "";
    return name ? [`seat ${seat}: `, element("bdi", {}, name)] : [`seat ${seat}`];
  }

  function hand(name, seat, cards, marked, able, options) {
    const label = [...seatName(seat, options), `, hand of ${cards.length}`];
    const slots = cards.map((id) => slot(id, marked, able, options.choose));
    return place(name, label, "hand", element("div", { class: "cards" }, ...slots));
  }

  function laid(name, melds, loose, target) {
    const groups = loose.length ? [...melds, loose] : melds;
    const size = groups.reduce((sum, group) => sum + group.length, 0);
    const label = `table: ${size} of ${target}${loose.length ? ", being laid" : ""}`;
    const drawn = groups.map((group) => element("div", { class: "meld" }, ...group.map(card)));
    return place(name, [label], "laid", element("div", { class: "melds" }, ...drawn));
  }

  function stock(view) {
    const pile = view.stock_count ? card(null) : element("span", { class: "card place" });
    return place("stock", [`stock ${view.stock_count}`], "pile", pile);
  }

  function faceUp(view, legal) {
    if (view.face_up === null) {
      return place("face-up", ["face up"], "pile", element("span", { class: "card place" }));
    }
    const face = card(view.face_up);
    face.classList.toggle("marked", legal.some((choice) => ["take", "force"].includes(choice.verb)));
    const made = place("face-up", [view.source], "pile", face);
    made.dataset.source = view.source;
    return made;
  }

  function turn(view, able, options) {
    const answers = able.filter((choice) => choice.card === null);
    return element("div", { class: "turn" },
      element("p", { class: "headline" }, options.headline ?? view.headline),
      element("p", {}, options.prompt ?? view.prompt),
      element("div", { class: "answers" }, ...answers.map((each) => button(each, options.choose))));
  }

  /** Each card of the pack has its place, so that a look tells what is gone. */
  function dead(view) {
    const gone = new Set(view.dead), cells = [];
    for (let suit = 0; suit < view.rules.suits; suit++) {
      for (let rank = 0; rank < view.rules.ranks; rank++) {
        const id = 10 * suit + rank;
        cells.push(gone.has(id) ? smallCard(id) : element("span", { class: "card small place" }));
      }
    }
    const grid = element("div", { class: "grid" }, ...cells);
    grid.style.setProperty("--ranks", view.rules.ranks);
    return place("dead", [`dead ${gone.size}`], "dead", grid);
  }

  /** Cards in hand that may be laid, or that were chosen to be given. */
  function markedCards(view, other, legal) {
    const given = [view.given, other ? other.given : null].filter((id) => id !== null);
    if (view.phase === "give") return new Set(given);
    const laying = new Set(legal.filter(({ verb }) => verb === "lay").map((each) => each.card));
    return new Set([...view.hand, ...(other ? other.hand : [])].filter((id) => laying.has(cardName(id))));
  }

  function otherHand(view, other) {
    if (other) return other.hand;
    return [...view.known, ...Array(view.other_hand_size - view.known.length).fill(null)];
  }

  function draw(root, view, other = null, options = {}) {
    const focused = root.contains(document.activeElement) ? document.activeElement : null;
    const views = other ? [view, other] : [view];
    const legal = choices(views, views.flatMap((each) => each.legal_actions));
    const able = options.actions ? choices(views, options.actions) : [];
    const marked = markedCards(view, other, legal), seat = view.seat;
    const felt = element("div", { class: "felt", "data-phase": view.phase },
      hand("other-hand", 1 - seat, otherHand(view, other), marked, able, options),
      laid("other-table", view.other_melds, view.other_loose, view.target),
      element("div", { class: "middle" },
        stock(view), faceUp(view, legal), turn(view, able, options), dead(view)),
      laid("own-table", view.melds, view.loose, view.target),
      hand("own-hand", seat, view.hand, marked, able, options));
    if (view.phase !== "over") {
      const side = view.actor === seat ? "own" : "other";
      for (const name of ["hand", "table"]) {
        felt.querySelector(`[data-place=${side}-${name}]`).classList.add("acting");
      }
    }
    root.replaceChildren(felt);
    if (focused) {
      const same = felt.querySelector(`[data-action="${focused.dataset.action}"]`);
      (same ?? felt.querySelector("[data-action]"))?.focus();
    }
  }

  return draw;
})();
