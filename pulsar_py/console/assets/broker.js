// The broker itself: what is stored where, and its settings.

import { h, replace, to } from "./dom.js";
import * as api from "./api.js";
import { badge, button, card, dialog, empty, heading, notice, table, tile } from "./ui.js";
import { bytes, count, topicParts } from "./format.js";

// What stands between backquotes is code.
function marked(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

function words(name) {
  return name.replace(/_(bytes|count)$/, "").replaceAll("_", " ");
}

function bars(rows, link) {
  const most = Math.max(1, ...rows.map((row) => row.bytes));
  return rows.length ? h("ul", { class: "bars" }, rows.map((row) => {
    const bar = h("span", { class: "bar" });
    bar.style.width = Math.max(0.5, 100 * row.bytes / most) + "%";
    return h("li", {}, h("a", { href: link(row.name), class: "name" }, row.name.replace("persistent://", "")), h("span", { class: "number" }, bytes(row.bytes)), h("span", { class: "bar-box", "aria-hidden": "true" }, bar));
  })) : empty("Nothing is stored.");
}

export async function storagePage(page) {
  const answer = await api.get(api.CONSOLE + "/storage");
  const figures = Object.entries(answer.store);
  const free = answer.store.disk_free_bytes;
  const isFull = answer.store.is_taking_writes === false || answer.store.is_taking_writes === 0;
  replace(page.element, heading("Storage"),
    h("div", { class: "tiles" }, tile("Topics' data", bytes(answer.totalBytes), "of topics loaded here"), free ? tile("Free on disk", bytes(free)) : null,
      "is_taking_writes" in answer.store ? tile("Writes", isFull ? "refused" : "taken", null, isFull ? "bad" : "good") : null),
    h("div", { class: "columns" }, card("Largest namespaces", bars(answer.namespaces, (name) => to("namespace", ...name.split("/")))), card("Largest topics", bars(answer.topics, (name) => to("topic", ...topicParts(name))))),
    card("The store", figures.length ? h("dl", { class: "facts" }, figures.map(([name, value]) => [h("dt", {}, words(name)), h("dd", {}, name.endsWith("_bytes") ? bytes(value) : typeof value === "boolean" ? (value ? "yes" : "no") : count(value))])) : empty("The store tells nothing of itself.")));
}

export async function settingsPage(page, parts, me) {
  const search = h("input", { type: "search", placeholder: "Search settings", "aria-label": "Search settings", "data-search": true, oninput: () => draw() });
  const only = h("input", { type: "checkbox", id: "only-changed", onchange: () => draw() });
  const place = h("div", {});
  const mayWrite = me.actions.includes("WRITE_BROKERS");
  let items = [];

  async function change(item) {
    const given = await dialog({ title: item.name, text: marked(item.doc), confirm: "Change on all brokers", fields: [{ name: "value", label: "Value", value: item.value }] });
    await api.post(api.path(api.ADMIN + "/brokers/configuration", item.name, given.value));
    notice(item.name + " was changed.", "good");
    await load();
  }
  async function back(item) {
    await api.del(api.path(api.ADMIN + "/brokers/configuration", item.name));
    notice(item.name + " has the value of the start again.", "good");
    await load();
  }
  function draw() {
    const wanted = search.value.toLowerCase();
    const rows = items.filter((item) => (item.name + " " + item.category + " " + item.doc).toLowerCase().includes(wanted) && (!only.checked || item.origin !== "default"));
    replace(place, rows.length ? table([
      { title: "Setting", cell: (item) => [h("span", { class: "name" }, item.name), h("small", { class: "doc" }, marked(item.doc))] },
      { title: "Value", cell: (item) => h("code", {}, item.value === "" ? "(empty)" : item.value) },
      { title: "Default", cell: (item) => h("code", { class: "muted" }, item.default === "" ? "(empty)" : item.default) },
      { title: "From", cell: (item) => badge(item.origin, item.origin === "default" ? "quiet" : "good") },
      { title: "", class: "row-actions", cell: (item) => item.isDynamic && mayWrite ? [button("Change", () => change(item)), item.origin.startsWith("changed") ? button("Undo", () => back(item)) : null] : null },
    ], rows) : empty("No setting is like that."));
  }
  async function load() {
    items = await api.get(api.CONSOLE + "/settings");
    draw();
  }
  replace(page.element, heading("Settings"), h("div", { class: "list-head" }, search, h("label", { class: "check", for: "only-changed" }, only, " only those that were given or changed")), place);
  await load();
}
