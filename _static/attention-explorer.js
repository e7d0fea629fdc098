/* <attention-explorer data-json='{"tokens": [...], "heads": [{"name": "", "weights": [[...]]}], "caption": ""}'>
 *
 * Choose a token on the left, by tap, arrow keys or pointer: the lines show where it looks, the bars
 * how much. Row = query, column = key. One head may also come as {"tokens", "weights", "caption"};
 * "head" and "query" say where to begin, by number.
 * What stands inside the element is the fallback: shown without JavaScript, kept as a table with it.
 */
(() => {
  "use strict";

  const ROW = 30; // height of a token in CSS pixels, the same as --row in course.css
  const SPEAK_AFTER = 500; // milliseconds of rest before a change is read aloud

  const make = (tag, className, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  const percent = (weight) => (weight > 0 && weight < 0.005 ? "<1 %" : `${Math.round(weight * 100)} %`);

  /* The row in words: who is looked at most, and how spread out the looking is. */
  const sentence = (tokens, row, query) => {
    const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a]);
    const [first, second] = order;
    const asks = `“${tokens[query]}”`;
    if (!(row[first] > 0)) return `${asks} sees nothing.`;
    let text = `${asks} looks most at “${tokens[first]}” (${percent(row[first])})`;
    if (second !== undefined && row[second] > 0) text += `, then “${tokens[second]}” (${percent(row[second])})`;
    const nats = row.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
    const seen = row.filter((p) => p > 0).length;
    return `${text}. Entropy ${nats.toFixed(2)} of at most ${Math.log(seen).toFixed(2)} nats.`;
  };

  class AttentionExplorer extends HTMLElement {
    connectedCallback() {
      if (this.frame) return; // moved within the page
      let data;
      try {
        data = JSON.parse(this.dataset.json);
      } catch {
        return; // the fallback stays
      }
      this.tokens = data.tokens;
      this.heads = data.heads || [{ name: "", weights: data.weights }];
      this.head = data.head ?? 0; // where to begin, if the page says so
      this.query = data.query ?? this.sharpest();
      this.build(data.caption || "Attention weights");
      this.show(this.query);
    }

    /* Begin with the query whose looking is most decided about another token. */
    sharpest() {
      const rows = this.heads[this.head].weights;
      const away = rows.map((row, t) => Math.max(...row.map((w, s) => (s === t ? 0 : w))));
      return away.indexOf(Math.max(...away));
    }

    build(caption) {
      const fallback = [...this.childNodes];
      this.queries = make("div", "ae-queries", { role: "radiogroup", "aria-label": "The token that looks" });
      this.buttons = this.tokens.map((token, t) => {
        const button = make("button", "ae-token", { type: "button", role: "radio" }, token);
        button.addEventListener("click", () => this.choose(t));
        button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && this.show(t));
        this.queries.append(button);
        return button;
      });
      this.queries.addEventListener("pointerleave", () => this.show(this.query));
      this.queries.addEventListener("keydown", (event) => this.step(event));

      const height = ROW * this.tokens.length;
      const svg = (tag, attributes) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
        return element;
      };
      const links = svg("svg", {
        class: "ae-links", viewBox: `0 0 100 ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true",
      });
      this.lines = this.tokens.map(() => links.appendChild(svg("path", { "vector-effect": "non-scaling-stroke" })));

      this.keys = make("ul", "ae-keys", { "aria-label": "The tokens it looks at" });
      this.bars = this.tokens.map((token) => {
        const bar = make("span", "ae-bar");
        const share = make("span", "ae-share");
        this.keys.append(make("li", "ae-key", {}, make("span", "ae-token", {}, token),
          make("span", "ae-track", { "aria-hidden": "true" }, bar), share));
        return { bar, share };
      });

      this.said = make("p", "ae-said");
      this.spoken = make("p", "ae-spoken", { "aria-live": "polite" });
      const table = make("div", "ae-scroll", { tabindex: "0", role: "region", "aria-label": "Weights as a table" }, ...fallback);
      this.frame = make("div", "ae", { role: "group", "aria-label": caption });
      if (this.heads.length > 1) this.frame.append(this.picker());
      this.frame.append(
        make("div", "ae-names", { "aria-hidden": "true" }, make("span", "", {}, "looks"), make("span", "", {}, "is looked at")),
        make("div", "ae-body", { style: `height:${height}px` }, this.queries, links, this.keys),
        this.said, make("p", "ae-caption", {}, caption), this.spoken);
      if (table.querySelector("table")) {
        this.frame.append(make("details", "ae-table", {}, make("summary", "", {}, "As a table"), table));
      }
      this.replaceChildren(this.frame);
    }

    picker() {
      const select = make("select", "ae-select");
      this.heads.forEach((head, i) => select.append(make("option", "", { value: i }, head.name || `head ${i}`)));
      select.value = this.head;
      select.addEventListener("change", () => {
        this.head = Number(select.value);
        this.show(this.query);
        this.speak();
      });
      return make("label", "ae-picker", {}, "Head ", select);
    }

    step(event) {
      const last = this.tokens.length - 1;
      const to = {
        ArrowDown: Math.min(this.query + 1, last), ArrowRight: Math.min(this.query + 1, last),
        ArrowUp: Math.max(this.query - 1, 0), ArrowLeft: Math.max(this.query - 1, 0), Home: 0, End: last,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.choose(to);
      this.buttons[to].focus();
    }

    choose(query) {
      this.query = query;
      this.show(query);
      this.speak();
    }

    /* Draw one query's row; pointing at a token shows it without choosing it. */
    show(query) {
      const row = this.heads[this.head].weights[query];
      this.buttons.forEach((button, t) => {
        button.setAttribute("aria-checked", String(t === this.query));
        button.tabIndex = t === this.query ? 0 : -1;
        button.classList.toggle("ae-shown", t === query);
      });
      const from = (query + 0.5) * ROW;
      row.forEach((weight, s) => {
        const to = (s + 0.5) * ROW;
        this.lines[s].setAttribute("d", `M0 ${from} C45 ${from} 55 ${to} 100 ${to}`);
        this.lines[s].style.strokeWidth = `${1 + 5 * weight}px`;
        this.lines[s].style.opacity = weight > 0 ? 0.12 + 0.88 * weight : 0;
        this.bars[s].bar.style.width = `${100 * weight}%`;
        this.bars[s].share.textContent = percent(weight);
      });
      this.said.textContent = sentence(this.tokens, row, query);
    }

    speak() {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => (this.spoken.textContent = this.said.textContent), SPEAK_AFTER);
    }
  }

  // Not before the page is read: the fallback inside must be there to be kept.
  const define = () => customElements.get("attention-explorer")
    || customElements.define("attention-explorer", AttentionExplorer);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", define);
  else define();
})();
