// The versions of a topic's schema, and what changed between two of them.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { badge, card, empty } from "./ui.js";
import { time } from "./format.js";

const MOST_LINES = 2000;

function text(schema) {
  try {
    return JSON.stringify(JSON.parse(schema.data), null, 2);
  } catch {
    return schema.data || "";
  }
}

/** Lines of both with "-", "+" or " ", by the longest common subsequence. */
export function difference(before, after) {
  const one = before.split("\n").slice(0, MOST_LINES);
  const two = after.split("\n").slice(0, MOST_LINES);
  const width = two.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = two.length - 1; j >= 0; j--) {
      lengths[i * width + j] = one[i] === two[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < one.length || j < two.length) {
    if (i < one.length && j < two.length && one[i] === two[j]) {
      lines.push([" ", one[i++]]);
      j++;
    } else if (j >= two.length || (i < one.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) lines.push(["-", one[i++]]);
    else lines.push(["+", two[j++]]);
  }
  return lines;
}

export async function schemas(body, { place }) {
  const [, tenant, namespace, name] = place;
  let versions = [];
  try {
    const answer = await api.get(api.path(api.ADMIN + "/schemas", tenant, namespace, name.replace(/-partition-\d+$/, "")) + "/schemas");
    versions = answer.getSchemaResponses || [];
  } catch (error) {
    if (error.status !== 404) throw error;
  }
  if (!versions.length) {
    replace(body, empty("The topic has no schema: its messages are bytes."));
    return;
  }
  const option = (each) => h("option", { value: each.version }, "version " + each.version + ", " + each.type + ", " + time(each.timestamp));
  const from = h("select", { "aria-label": "From version", onchange: draw }, h("option", { value: "" }, "nothing"), versions.map(option));
  const until = h("select", { "aria-label": "To version", onchange: draw }, versions.map(option));
  until.value = versions[versions.length - 1].version;
  from.value = versions.length > 1 ? versions[versions.length - 2].version : "";
  const shown = h("pre", { class: "difference" });
  const facts = h("div", { class: "muted" });
  function draw() {
    const find = (choice) => versions.find((each) => String(each.version) === choice.value);
    const one = find(from);
    const two = find(until);
    replace(facts, badge(two.type), " ", time(two.timestamp), Object.entries(two.properties || {}).map(([key, value]) => [" ", badge(key + "=" + value)]));
    const lines = one ? difference(text(one), text(two)) : text(two).split("\n").map((line) => [" ", line]);
    replace(shown, lines.map(([sign, line]) => h("span", { class: { "+": "added", "-": "removed", " ": "same" }[sign] }, sign + " " + line + "\n")));
  }
  replace(body, card(["Schema", from, h("span", { class: "muted" }, "compared with"), until], facts, shown));
  draw();
}
