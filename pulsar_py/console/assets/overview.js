// The broker at a glance: live rates, plots, the busiest topics, and what an operator should look at.

import { h, replace, to } from "./dom.js";
import * as api from "./api.js";
import { badge, card, empty, heading, problem, table, tile } from "./ui.js";
import { brief, bytes, count, rate, topicParts } from "./format.js";
import { plot } from "./plots.js";

const SPAN = 4 * 60000;

export function topicLink(full) {
  return h("a", { href: to("topic", ...topicParts(full)), class: "name" }, full.replace("persistent://", ""));
}

export async function overview(page, parts, me) {
  const tiles = h("div", { class: "tiles" });
  const messages = plot("Messages a second", [
    { name: "in", class: "one", of: (each) => each.messageInRate },
    { name: "out", class: "two", of: (each) => each.messageOutRate }], brief, SPAN);
  const sizes = plot("Bytes a second", [
    { name: "in", class: "one", of: (each) => each.bytesInRate },
    { name: "out", class: "two", of: (each) => each.bytesOutRate }], bytes, SPAN);
  const backlog = plot("Backlog, entries", [{ name: "waiting", class: "three", of: (each) => each.backlog }], brief, SPAN);
  const busiest = h("div", {}, empty("Nothing has gone through since the last look."));
  const findings = h("div", {}, empty("Looking …"));
  replace(page.element,
    heading("Overview", h("span", { class: "muted" }, "cluster " + me.cluster + " · speaks Pulsar " + me.version)),
    tiles,
    h("div", { class: "columns" }, card(null, messages), card(null, sizes)),
    h("div", { class: "columns" }, card("Busiest topics", busiest), card(null, backlog)),
    card("To look at", findings));

  let samples = [];
  page.every(2000, async () => {
    let answer;
    try {
      const last = samples.length ? samples[samples.length - 1].millis : 0;
      answer = await api.get(api.CONSOLE + "/live" + api.query({ since: last || "" }));
    } catch (error) {
      if (page.isShown) replace(tiles, problem(error));
      return;
    }
    if (!page.isShown) return;
    samples = samples.concat(answer.samples).slice(-300);
    const now = samples[samples.length - 1];
    replace(tiles,
      tile("Messages in", rate(now.messageInRate), bytes(now.bytesInRate) + "/s"),
      tile("Messages out", rate(now.messageOutRate), bytes(now.bytesOutRate) + "/s"),
      tile("Backlog", brief(now.backlog), count(now.backlog) + " entries"),
      tile("Topics", count(now.topics), "loaded here"),
      tile("Subscriptions", count(now.subscriptions)),
      tile("Producers", count(now.producers)),
      tile("Consumers", count(now.consumers)),
      tile("Connections", count(now.connections)),
      tile("Stored", bytes(now.storageBytes)));
    messages.show(samples);
    sizes.show(samples);
    backlog.show(samples);
    if (answer.busiest.length) {
      replace(busiest, table([
        { title: "Topic", cell: (row) => topicLink(row.topic) },
        { title: "In", class: "number", cell: (row) => rate(row.messageInRate) },
        { title: "Out", class: "number", cell: (row) => rate(row.messageOutRate) },
        { title: "Backlog", class: "number", cell: (row) => brief(row.backlog) },
      ], answer.busiest));
    } else replace(busiest, empty("No message has gone through since the last look."));
  });

  page.every(60000, async () => {
    try {
      const found = await api.get(api.ADMIN + "/brokers/symptoms");
      if (!page.isShown) return;
      replace(findings, found.length ? h("ul", { class: "findings" }, found.map((each) => h("li", { class: each.urgency },
        badge(each.urgency, { error: "bad", warning: "warn" }[each.urgency] || ""), h("div", {}, h("p", {}, each.message), h("p", { class: "muted" }, each.help))))) : empty("Nothing. Disk, loop, descriptors and certificates are fine."));
    } catch (error) {
      if (page.isShown) replace(findings, problem(error));
    }
  });
}
