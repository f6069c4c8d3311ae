
// Search within the open episode: highlights matches and steps through them.

class Search {
  constructor() {
    this.texts = []; // the searched texts: LongText objects, each with its `details` element if any
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

  /** Add a text to the search; return its element. */
  add(text, details = null) {
    this.texts.push({ text, details });
    return text.element;
  }

  /** Start over with another episode and the same search term. */
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
    this.more = this.texts.some(({ text }) => text.budget.match < 0) ? "+" : ""; // there are more matches than marks
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
