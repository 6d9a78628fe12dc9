// Parts that all pages are made of: cards, tables with pages, tabs, dialogs, notices.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { count } from "./format.js";

/** A page that ends: its timers stop when another one is shown. */
export class Page {
  constructor(element) {
    this.element = element;
    this.isShown = true;
    this.timers = [];
  }

  every(millis, act) {
    const loop = async () => {
      if (!this.isShown) return;
      if (!document.hidden) await act();
      if (this.isShown) this.timers.push(setTimeout(loop, millis));
    };
    return loop();
  }

  end() {
    this.isShown = false;
    this.timers.forEach(clearTimeout);
  }
}

export function card(title, ...children) {
  const [name, ...actions] = Array.isArray(title) ? title : [title];
  return h("section", { class: "card" },
    name && h("header", { class: "card-head" }, h("h2", {}, name), h("div", { class: "actions" }, actions)), children);
}

export function tile(label, value, hint, kind) {
  return h("div", { class: "tile " + (kind || ""), title: hint }, h("div", { class: "tile-label" }, label), h("div", { class: "tile-value" }, value));
}

export function badge(text, kind, title) {
  return h("span", { class: "badge " + (kind || ""), title }, text);
}

export function crumbs(...links) {
  return h("nav", { class: "crumbs", "aria-label": "Place" },
    links.map(([text, href], index) => [index ? h("span", { "aria-hidden": "true" }, "/") : null, href ? h("a", { href }, text) : h("span", {}, text)]));
}

export function heading(title, ...beside) {
  return h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, title), h("div", { class: "actions" }, beside));
}

export function button(text, act, options) {
  const element = h("button", { type: "button", class: (options && options.class) || "", title: options && options.title, disabled: options && options.disabled }, text);
  element.addEventListener("click", async () => {
    element.disabled = true;
    try {
      await act();
    } catch (error) {
      failed(error);
    } finally {
      element.disabled = false;
    }
  });
  return element;
}

export function empty(text, ...more) {
  return h("div", { class: "empty" }, text, more);
}

export function problem(error) {
  const isRight = error.status === 401 || error.status === 403;
  const element = h("div", { class: "problem", role: "alert" }, h("strong", {}, isRight ? "You may not see this. " : "That did not work. "), error.message, " ");
  if (error.status === 307) elsewhere(element);
  return element;
}

/** Adds a link to the console of the broker that serves the topic of this page. */
async function elsewhere(element) {
  const [, ...parts] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  const found = await api.get(api.path("/lookup/v2/topic", ...parts.slice(0, 4))).catch(() => null);
  const url = found && (found.httpUrl || found.httpUrlTls);
  if (/^https?:/.test(url || "")) element.append("Go on at ", h("a", { href: url + "/console/" + location.hash, rel: "noreferrer" }, url), ".");
}

export function notice(text, kind) {
  let place = document.getElementById("notices");
  if (!place) {
    place = h("div", { id: "notices", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  const element = h("div", { class: "notice " + (kind || "") }, text);
  place.append(element);
  setTimeout(() => element.remove(), kind === "bad" ? 9000 : 4000);
}

export function failed(error) {
  if (error && error.message !== "cancelled") notice(error.message || String(error), "bad");
}

/** A table; `columns` are {title, cell(row), class, sort}. */
export function table(columns, rows, options) {
  const caption = options && options.caption;
  return h("div", { class: "scroll" }, h("table", {},
    caption && h("caption", {}, caption),
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.class }, column.title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column) => h("td", { class: column.class, "data-label": column.title }, column.cell(row))))))));
}

/** A list that the server searches and pages; `load({search, after, limit})` gives a page. */
export function pagedList({ load, columns, label, limit, none, beside }) {
  const place = h("div", { class: "list-body" });
  const foot = h("div", { class: "pager" });
  const input = h("input", { type: "search", placeholder: "Search " + label, "aria-label": "Search " + label, "data-search": true });
  const before = [];
  let after = "";
  let asked = 0;

  async function show() {
    const number = ++asked;
    place.setAttribute("aria-busy", "true");
    try {
      const page = await load({ search: input.value, after, limit: limit || 50 });
      if (number !== asked) return;
      const items = page.items;
      replace(place, items.length ? table(columns, items) : empty(input.value ? "Nothing has “" + input.value + "” in its name." : none || "There are none."));
      const first = before.length * (limit || 50) + 1;
      replace(foot,
        h("span", {}, page.total ? count(first) + "–" + count(first + items.length - 1) + " of " + count(page.total) : ""),
        page.more || before.length ? [
          button("Back", async () => { after = before.pop(); await show(); }, { disabled: !before.length }),
          button("On", async () => { before.push(after); after = items[items.length - 1].key || items[items.length - 1].name; await show(); }, { disabled: !page.more }),
        ] : null);
    } catch (error) {
      if (number === asked) replace(place, problem(error));
    } finally {
      place.removeAttribute("aria-busy");
    }
  }

  let waiting = null;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { before.length = 0; after = ""; show(); }, 200);
  });
  const element = h("div", { class: "list" }, h("div", { class: "list-head" }, input, beside || null), place, foot);
  element.show = show;
  return element;
}

/** Tabs; `items` are [name, title]. `href(name)` is each one's address; arrows go along them. */
export function tabs(items, current, href) {
  const links = items.map(([name, title]) => h("a", { href: href(name), "aria-current": name === current ? "page" : null }, title));
  return h("nav", { class: "tabs", "aria-label": "Parts of this page", onkeydown: (event) => {
    const place = links.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (place < 0 || !step) return;
    event.preventDefault();
    links[(place + step + links.length) % links.length].focus();
  } }, links);
}

/** A dialog with fields; resolves with its values, rejects with "cancelled". With `only` there is nothing to cancel. */
export function dialog({ title, text, fields, confirm, danger, type, body, only }) {
  return new Promise((resolve, reject) => {
    const inputs = {};
    const accept = h("button", { type: "submit", class: danger ? "danger" : "primary" }, confirm || "OK");
    const form = h("form", { method: "dialog" },
      h("h2", {}, title), text && h("p", {}, text), body || null,
      (fields || []).map((field) => {
        const id = "field-" + field.name;
        const input = field.kind === "select"
          ? h("select", { id }, field.options.map((option) => h("option", { value: option, selected: option === field.value }, option)))
          : field.kind === "area"
            ? h("textarea", { id, rows: field.rows || 6, spellcheck: "false" })
            : h("input", { id, type: field.kind || "text", checked: field.kind === "checkbox" ? Boolean(field.value) : undefined, min: field.min, required: field.required, autocomplete: "off", spellcheck: "false" });
        if (field.kind !== "checkbox" && field.kind !== "select" && field.value !== undefined) input.value = field.value;
        inputs[field.name] = input;
        return h("div", { class: field.kind === "checkbox" ? "field check" : "field" }, h("label", { for: id }, field.label), input, field.hint && h("small", {}, field.hint));
      }),
      type && h("div", { class: "field" }, h("label", { for: "field-typed" }, "Type ", h("code", {}, type), " to go on"), inputs.typed = h("input", { id: "field-typed", autocomplete: "off", spellcheck: "false" })),
      h("div", { class: "dialog-actions" }, only ? null : h("button", { type: "button", onclick: () => element.close() }, "Cancel"), accept));
    const element = h("dialog", { "aria-label": title }, form);
    let values = null;
    if (type) {
      accept.disabled = true;
      inputs.typed.addEventListener("input", () => { accept.disabled = inputs.typed.value !== type; });
    }
    form.addEventListener("submit", () => {
      values = {};
      for (const [name, input] of Object.entries(inputs)) values[name] = input.type === "checkbox" ? input.checked : input.value;
    });
    element.addEventListener("close", () => {
      element.remove();
      if (values) resolve(values);
      else reject(new Error("cancelled"));
    });
    document.body.append(element);
    element.showModal();
  });
}

/** Saves a text as a file of the reader's. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type: type || "application/json" }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
