// Messages, decoded by the broker; searched over all partitions, read on, and saved.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { badge, button, card, empty, failed, notice, save } from "./ui.js";
import { bytes, plural, pretty, time } from "./format.js";

const AT_ONCE = 4;
const MOST_SHOWN = 2000;

/** `subscription` of a context narrows it to what that has not acknowledged. */
export async function messages(body, context) {
  const { place, own, subscription } = context;
  const shown = await api.get(own.replace(/\/subscription\/[^/]*$/, "") + api.query({ limit: 1 }));
  const names = shown.partitions ? Array.from({ length: shown.partitions }, (_, index) => place[3] + "-partition-" + index) : [place[3]];
  const given = decodeURIComponent(location.hash.split("/")[7] || "");
  const form = h("form", { class: "search", onsubmit: (event) => { event.preventDefault(); start().catch(failed); } });
  const fields = {};
  function field(name, label, placeholder, kind) {
    fields[name] = h("input", { id: "m-" + name, type: kind || "text", placeholder, step: kind === "datetime-local" ? "1" : null, autocomplete: "off", spellcheck: "false", "data-search": name === "text" });
    return h("div", { class: "field" }, h("label", { for: "m-" + name }, label), fields[name]);
  }
  form.append(
    field("text", "Text in the value", "refund"), field("key", "Key", "customer-7"), field("property", "Property", "name or name=value"), field("where", "Field of the value", "amount>10"),
    field("time", "From a time", "", "datetime-local"), field("id", names.length === 1 ? "From an id" : "From an id (one partition only)", "12:0"),
    h("div", { class: "field buttons" }, h("button", { type: "submit", class: "primary" }, "Search")));
  fields.id.value = subscription ? "" : given;
  fields.id.disabled = names.length > 1;
  const list = h("div", { class: "messages" });
  const state = h("div", { class: "pager" });
  replace(body, card(null, form), card([subscription ? "Not acknowledged yet" : "Messages", context.beside || null, button("Save as a file", async () => {
    if (!found.length) return notice("There is nothing to save yet.");
    save(place[3] + ".jsonl", found.map((each) => JSON.stringify(each)).join("\n") + "\n", "application/x-ndjson");
  })], list, state));

  let found = [];
  let places = new Map();
  let scanned = 0;
  let asked = 0;

  async function start() {
    found = [];
    scanned = 0;
    places = new Map(names.map((name) => [name, null]));
    await on();
  }

  function parameters(next) {
    const values = { limit: names.length > 1 ? 20 : 50, text: fields.text.value, key: fields.key.value, property: fields.property.value, where: fields.where.value };
    if (next) values.messageId = next;
    else if (fields.id.value && names.length === 1) values.messageId = fields.id.value;
    else if (fields.time.value) values.timestamp = new Date(fields.time.value).getTime();
    return api.query(values);
  }

  async function on() {
    const number = ++asked;
    list.setAttribute("aria-busy", "true");
    replace(state, "Searching …", button("Stop", async () => { asked++; show(); }));
    const waiting = [...places];
    const fresh = [];
    try {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, waiting.length) }, async () => {
        while (waiting.length && number === asked) {
          const [name, next] = waiting.shift();
          const parts = [...place.slice(0, 3), name];
          const base = subscription ? api.path(api.path(api.ADMIN, ...parts), "subscription", subscription, "messages") : api.path(api.ADMIN, ...parts, "messages");
          const answer = await api.get(base + parameters(next));
          if (number !== asked) return;
          fresh.push(...answer.messages);
          scanned += answer.scannedEntries;
          if (answer.next) places.set(name, answer.next);
          else places.delete(name);
        }
      }));
    } catch (error) {
      if (number !== asked) return;
      list.removeAttribute("aria-busy");
      replace(state, "");
      throw error;
    }
    if (number !== asked) return;
    fresh.sort((one, other) => (one.publishTime || "").localeCompare(other.publishTime || ""));
    found.push(...fresh);
    show();
  }

  function show() {
    list.removeAttribute("aria-busy");
    replace(list, found.length ? found.slice(-MOST_SHOWN).map((each, index) => message(each, index === 0 && (found.length === 1 || (given !== "" && fields.id.value === given)))) : empty(places.size ? "Nothing among the entries looked at; search on." : "No message is like that."));
    replace(state, h("span", {}, plural(found.length, "message") + ", " + plural(scanned, "entry", "entries") + " looked at"), places.size ? button("Search on", on) : h("span", { class: "muted" }, "that is all"));
  }
  await start();
}

function message(each, isOpen) {
  const value = each.error ? each.error : each.value === undefined ? (each.payload === undefined ? null : each.payload) : each.value;
  const line = value === null ? "null" : typeof value === "string" ? value : JSON.stringify(value);
  const rest = ["eventTime", "orderingKey", "producerName", "sequenceId", "schemaVersion", "schemaType", "deliverAtTime", "replicatedFrom", "chunk", "encryptionKeys", "marker"].filter((name) => each[name] !== undefined);
  const details = h("details", { open: isOpen }, h("summary", {},
    h("code", { class: "id" }, each.messageId.replace(/:-1$/, "")), h("span", { class: "when" }, time(each.publishTime)), each.key === undefined ? null : badge(each.key, "", "key"),
    each.error ? badge("not readable", "bad") : null, h("span", { class: "line" }, line.slice(0, 300))));
  let isFilled = false;
  const fill = () => {
    if (isFilled) return;
    isFilled = true;
    details.append(h("div", { class: "message-body" },
      each.error && h("p", { class: "problem" }, each.error),
      h("pre", {}, pretty(each.error ? each.payload ?? "" : value)),
      h("dl", { class: "facts" },
        Object.entries(each.properties || {}).map(([name, text]) => [h("dt", {}, name), h("dd", { class: "property" }, text)]),
        rest.map((name) => [h("dt", { class: "muted" }, name), h("dd", {}, typeof each[name] === "object" ? JSON.stringify(each[name]) : String(each[name]))]),
        h("dt", { class: "muted" }, "size"), h("dd", {}, bytes(each.sizeBytes))),
      h("p", { class: "muted" }, each.topic)));
  };
  if (isOpen) fill();
  details.addEventListener("toggle", fill);
  return details;
}

