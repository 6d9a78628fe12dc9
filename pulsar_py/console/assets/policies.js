// Policies with what applies, where that comes from, and what counts without them; to be changed.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { badge, button, dialog, notice, table } from "./ui.js";

const IN_QUERY = new Set(["messageTTL", "subscriptionExpirationTime"]);
const KINDS = { topic: "good", namespace: "", broker: "quiet", unset: "quiet" };

function shown(value) {
  if (value === null || value === undefined) return h("span", { class: "muted" }, "–");
  if (typeof value === "object" && !Array.isArray(value)) {
    return h("span", { class: "value" }, Object.entries(value).map(([name, each]) => h("span", { class: "pair" }, name + ": ", h("b", {}, JSON.stringify(each)))));
  }
  return h("span", { class: "value" }, h("b", {}, JSON.stringify(value)));
}

export async function policies(body, { tenant, namespace, topic, rights }) {
  const base = topic ? api.path(api.ADMIN, ...topic) : api.path(api.ADMIN + "/namespaces", tenant, namespace);
  const from = topic ? api.path(api.CONSOLE + "/topic", ...topic) + "/policies" : api.path(api.CONSOLE + "/policies", tenant, namespace);
  const own = topic ? "topic" : "namespace";
  const search = h("input", { type: "search", placeholder: "Search policies", "aria-label": "Search policies", "data-search": true, oninput: () => draw() });
  const only = h("input", { type: "checkbox", id: "only-set", onchange: () => draw() });
  const place = h("div", { class: "policies" });
  let lines = [];

  function address(line) {
    return base + "/" + line.word + (line.kind ? api.query({ backlogQuotaType: line.kind }) : "");
  }

  async function edit(line) {
    const start = line[own] ?? line.value ?? null;
    const given = await dialog({ title: line.word + (line.kind ? " – " + line.kind : ""), confirm: "Set", text: "Of this " + own + ". It overrides what comes from below.", fields: [
      { name: "value", label: "Value, in JSON", kind: "area", value: JSON.stringify(start, null, 2), rows: 8 }] });
    const value = JSON.parse(given.value);
    const send = line.method === "PUT" ? api.put : api.post;
    if (topic && IN_QUERY.has(line.word)) await send(address(line) + api.query({ [line.word]: value }));
    else await send(address(line), value);
    notice(line.word + " was set.", "good");
    await load();
  }

  async function remove(line) {
    await dialog({ title: "Remove " + line.word, text: "Then what comes from below counts again.", confirm: "Remove", danger: true });
    await api.del(address(line));
    notice(line.word + " was removed.", "good");
    await load();
  }

  function draw() {
    const wanted = search.value.toLowerCase();
    const rows = lines.filter((line) => (line.word + (line.kind || "")).toLowerCase().includes(wanted) && (!only.checked || line.origin === own));
    replace(place, table([
      { title: "Policy", cell: (line) => [h("span", { class: "name" }, line.word), line.kind ? [h("br"), h("small", { class: "muted" }, line.kind)] : null] },
      { title: "Applies", cell: (line) => shown(line.value) },
      { title: "From", cell: (line) => badge(line.origin === "unset" ? "not set" : line.origin, KINDS[line.origin]) },
      topic ? { title: "Namespace", cell: (line) => shown(line.namespace) } : null,
      { title: "Broker's default", cell: (line) => shown(line.broker) },
      { title: "", class: "row-actions", cell: (line) => rights.has(line.needs) ? [button("Set", () => edit(line)), line.removable && line[own] !== undefined && line[own] !== null ? button("Remove", () => remove(line), { class: "danger" }) : null] : null },
    ].filter(Boolean), rows));
  }

  async function load() {
    lines = await api.get(from);
    draw();
  }
  replace(body, h("div", { class: "list-head" }, search, h("label", { class: "check", for: "only-set" }, only, " only those of this " + own)), place);
  await load();
}

