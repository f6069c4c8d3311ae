
// Search within the open episode: matches are marked, and walked through.

class Search {
  constructor() {
    this.texts = []; // what is searched: each a LongText, with the `details` in which it may lie
    this.marks = [];
    this.at = -1;
    this.input = el("input", { type: "search", placeholder: "Search", "aria-label": "Search in this episode", spellcheck: "false", autocomplete: "off" });
    this.status = el("span", { class: "muted", role: "status" });
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), 120);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.run();
      this.go(event.shiftKey ? -1 : 1);
    });
    this.element = el("div", { class: "search", role: "search" }, this.input, this.status);
  }

  /** Have a text searched; return its element. */
  add(text, details = null) {
    this.texts.push({ text, details });
    return text.element;
  }

  /** Begin with another episode, and look for the same in it. */
  reset() {
    this.texts = [];
    this.marks = [];
    this.at = -1;
    this.query = "";
  }

  run() {
    clearTimeout(this.timer);
    const query = this.input.value;
    if (query === this.query) return;
    this.query = query;
    const pattern = query.trim() ? new RegExp(query.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "giu") : null;
    this.marks = this.texts.flatMap(({ text, details }) => {
      const marks = text.search(pattern);
      if (marks.length && details) details.open = true;
      return marks;
    });
    this.at = -1;
    this.more = this.texts.some(({ text }) => text.budget.match < 0) ? "+" : ""; // not all could be marked
    this.status.textContent = pattern ? "no match" : "";
    if (this.marks.length) this.go(1);
  }

  go(by) {
    if (!this.marks.length) return;
    this.marks[this.at]?.classList.remove("current");
    this.at = (this.at + by + this.marks.length) % this.marks.length;
    this.marks[this.at].classList.add("current");
    this.marks[this.at].scrollIntoView({ block: "center" });
    this.status.textContent = `${this.at + 1} of ${this.marks.length.toLocaleString("en")}${this.more}`;
  }
}
