"use strict";

// All text from models and servers passes through this file and is shown as plain text. Invisible characters
// and characters that change the text direction are replaced by their names.

const ZWJ = "(?<![\\p{Extended_Pictographic}\\ufe0f\\u{1f3fb}-\\u{1f3ff}])\\u200d"; // a joiner within an emoji stays
const INVISIBLE = new RegExp(
  `(?:(?![\\n\\t\\u200d])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{Noncharacter_Code_Point}` +
    `\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0\\u{e0100}-\\u{e01ef}]|${ZWJ})+`,
  "gu",
);
const CUT = 8000; // initially visible characters of a long text
const SHORT = 400; // maximum characters of an inline text
const MARKED = 2000; // maximum number of highlighted matches, and of named characters, in a text
const NAMED = 4; // maximum number of named characters in a sequence of invisible ones

const NAMES = new Map([
  [0x00, "NUL"], [0x07, "BEL"], [0x08, "BS"], [0x0d, "CR"], [0x1b, "ESC"], [0x7f, "DEL"], [0xad, "soft hyphen"],
  [0x61c, "ALM"], [0x200b, "zero width space"], [0x200c, "ZWNJ"], [0x200d, "ZWJ"], [0x200e, "LRM"],
  [0x200f, "RLM"], [0x2028, "line separator"], [0x2029, "paragraph separator"], [0x202a, "LRE"], [0x202b, "RLE"],
  [0x202c, "PDF"], [0x202d, "LRO"], [0x202e, "RLO"], [0x2066, "LRI"], [0x2067, "RLI"], [0x2068, "FSI"],
  [0x2069, "PDI"], [0xfeff, "BOM"],
]);

/** Return an element. Children that are string literals become text nodes; pass untrusted data through `said`. */
function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function codeOf(character) {
  const code = character.codePointAt(0);
  const name = NAMES.get(code);
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}${name ? ` ${name}` : ""}`;
}

/** Return the names of a sequence of invisible characters, in brackets. */
function named(row) {
  const characters = Array.from(row.length > 64 ? row.slice(0, 64) : row);
  const first = characters.slice(0, NAMED).map(codeOf).join(", ");
  const more = row.length > 64 ? row.length - NAMED : characters.length - NAMED;
  return more > 0 ? `[${first} and ${more.toLocaleString("en")} more]` : `[${first}]`;
}

/** Return an untrusted text for a title, a label or the page name: short, without invisible characters. */
function plain(text) {
  return short(String(text)).replaceAll(INVISIBLE, named);
}

function short(text) {
  return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
}

/**
 * Append an untrusted text to an element, with invisible characters named and search matches highlighted.
 *
 * `budget` limits how many more of both get their own elements. Its `match` is below 0 if a match got none.
 */
function write(element, text, pattern = null, budget = newBudget()) {
  let held = "";
  const mark = (kind, content) => {
    budget[kind] -= 1;
    if (budget[kind] < 0) {
      held += content;
      return;
    }
    element.append(held);
    held = "";
    const marked = document.createElement(kind === "match" ? "mark" : "span");
    if (kind === "character") marked.className = kind;
    marked.textContent = content;
    element.append(marked);
  };
  const searched = (part) => {
    let from = 0;
    if (pattern) {
      for (const match of part.matchAll(pattern)) {
        held += part.slice(from, match.index);
        mark("match", match[0]);
        from = match.index + match[0].length;
      }
    }
    held += part.slice(from);
  };
  let from = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    searched(text.slice(from, match.index));
    mark("character", named(match[0]));
    from = match.index + match[0].length;
  }
  searched(text.slice(from));
  element.append(held);
}

function newBudget() {
  return { match: MARKED, character: MARKED };
}

/** Split a long text at line ends, otherwise between words, because browsers lay out short parts faster. */
function divided(text) {
  const parts = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + CUT, text.length);
    if (to < text.length) {
      const line = text.lastIndexOf("\n", to - 1);
      const word = text.lastIndexOf(" ", to - 1);
      if (line > from) to = line + 1;
      else if (word > from) to = word + 1;
      else if (/[\udc00-\udfff]/.test(text[to])) to += 1; // not within a surrogate pair
    }
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

/** Return a short untrusted text for inline use. */
function said(text, properties = {}) {
  const element = el("bdi", properties);
  write(element, short(String(text)));
  return element;
}

/** A long untrusted text: it wraps, can be searched, and is truncated if very long. */
class LongText {
  constructor(text, className = "") {
    this.text = text.replaceAll("\r\n", "\n");
    this.whole = this.text.length <= CUT + CUT / 4;
    this.beginning = this.whole ? this.text : divided(this.text.slice(0, CUT + 2))[0];
    this.body = el("div", { class: `said ${className}`, dir: "auto" });
    this.element = el("div", {}, this.body);
    this.pattern = null;
    this.draw();
  }

  draw() {
    this.more?.remove();
    this.more = null;
    this.body.replaceChildren();
    this.budget = newBudget();
    if (this.whole && this.text.length > 2 * CUT) {
      for (const part of divided(this.text)) {
        const line = el("div", { class: "part", dir: "auto" });
        write(line, part, this.pattern, this.budget);
        this.body.append(line);
      }
    } else write(this.body, this.whole ? this.text : `${this.beginning}…`, this.pattern, this.budget);
    if (this.whole) return;
    const label = `Show all ${this.text.length.toLocaleString("en")} characters`;
    this.more = el("button", { type: "button", class: "more", onclick: () => this.showAll() }, label);
    this.element.append(this.more);
  }

  showAll() {
    this.whole = true;
    this.draw();
    this.body.tabIndex = -1;
    this.body.focus({ preventScroll: true });
  }

  /** Highlight the matches of a search up to the limit; null highlights none. Return the marks. */
  search(pattern) {
    const before = this.pattern;
    const found = pattern !== null && this.text.search(pattern) >= 0;
    this.pattern = found ? pattern : null;
    if (found && !this.whole && this.text.slice(this.beginning.length).search(pattern) >= 0) this.whole = true;
    if (before || found) this.draw();
    return found ? [...this.body.querySelectorAll("mark")] : [];
  }
}

function decimal(value, digits = 2) {
  if (typeof value !== "number") return "–";
  return Math.abs(value) >= 1e6 ? value.toExponential(2) : value.toFixed(digits);
}

/** Return a number without insignificant digits. */
function number(value) {
  if (typeof value !== "number") return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

function percent(share) {
  return typeof share === "number" ? `${(100 * share).toFixed(1)} %` : "–";
}

function seconds(value) {
  if (typeof value !== "number") return "–";
  if (value < 0.0995) return `${(1000 * value).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 9.95) return `${value.toFixed(2)} s`;
  if (value < 600) return `${value.toFixed(0)} s`;
  return value < 36000 ? `${(value / 60).toFixed(0)} min` : `${(value / 3600).toFixed(1)} h`;
}

function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
