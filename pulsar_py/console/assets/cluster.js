// The brokers of the cluster: who has what and since when, what came and went and why, what was moved or split.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { badge, card, empty, heading, problem, table, tile } from "./ui.js";
import { ago, bytes, count, rate, time } from "./format.js";

const MOST_ROWS = 200;

function share(value) {
  return value === null || value === undefined ? "–" : Math.round(100 * value) + " %";
}

function when(millis) {
  return h("time", { title: time(millis) }, ago(millis));
}

function brokerName(row, answer) {
  const isHere = row.brokerId === answer.brokerId;
  const name = isHere || !row.webUrl ? h("span", { class: "name" }, row.brokerId)
    : h("a", { class: "name", href: row.webUrl + "/console/#/cluster", rel: "noreferrer" }, row.brokerId);
  return [name, isHere ? badge("this one", "quiet") : null, row.brokerId === answer.leaderId ? badge("leader", "good") : null];
}

function brokersTable(answer) {
  return table([
    { title: "Broker", cell: (row) => brokerName(row, answer) },
    { title: "Busy", class: "number", cell: (row) => share(row.smoothedUsage ?? row.usage) },
    { title: "Loop", class: "number", cell: (row) => share(row.cpu) },
    { title: "Memory", class: "number", cell: (row) => share(row.memory) },
    { title: "Bundles", class: "number", cell: (row) => count(row.bundles.length) },
    { title: "Topics", class: "number", cell: (row) => count(row.topics) },
    { title: "Clients", class: "number", cell: (row) => count(row.producers + row.consumers) },
    { title: "Messages", class: "number", cell: (row) => rate(row.msgRate) },
    { title: "Bytes", class: "number", cell: (row) => bytes(row.throughput) + "/s" },
    { title: "Started", cell: (row) => when(row.started) },
    { title: "Reported", cell: (row) => when(row.updated) },
  ], answer.brokers);
}

/** Every bundle of the cluster with its owner; since when is known of this broker's own. */
function ownersOf(answer) {
  const since = new Map(answer.bundles.map((each) => [each.bundle, each.since]));
  const rows = [...since].map(([bundle, millis]) => ({ bundle, owner: answer.brokerId, since: millis }));
  for (const broker of answer.brokers) {
    if (broker.brokerId === answer.brokerId) continue;
    for (const bundle of broker.bundles) if (!since.has(bundle)) rows.push({ bundle, owner: broker.brokerId, since: null });
  }
  return rows.sort((a, b) => (a.bundle < b.bundle ? -1 : 1));
}

function some(rows, columns, none) {
  if (!rows.length) return empty(none);
  return [table(columns, rows.slice(0, MOST_ROWS)), rows.length > MOST_ROWS ? h("p", { class: "muted" }, "The first " + MOST_ROWS + " of " + count(rows.length) + ".") : null];
}

export async function clusterPage(page) {
  const search = h("input", { type: "search", placeholder: "Search bundles, brokers, reasons", "aria-label": "Search bundles, brokers, reasons", "data-search": true, oninput: () => draw() });
  const tiles = h("div", { class: "tiles" });
  const brokers = h("div", {}, empty("Looking …"));
  const owners = h("div", {});
  const changes = h("div", {});
  const balancing = h("div", {});
  let answer = null;

  function draw() {
    if (!answer) return;
    const wanted = search.value.toLowerCase();
    const isWanted = (row) => Object.values(row).join(" ").toLowerCase().includes(wanted);
    const isAlone = !answer.brokers.length;
    const standing = answer.isLeaving ? "leaves" : answer.isLeading ? "leads" : isAlone ? "alone" : "follows";
    replace(tiles,
      tile("This broker", standing, answer.brokerId, answer.isLeaving ? "bad" : ""),
      isAlone ? null : tile("Leader", answer.leaderId || "none", "moves and splits bundles", answer.leaderId ? "" : "bad"),
      tile("Session", answer.session.isGood ? "good" : "in doubt", "with the metadata store", answer.session.isGood ? "good" : "bad"),
      tile("Doubts", count(answer.session.doubts), "times that the session was in doubt since the start"),
      tile("Held lookups", count(answer.heldLookups), "wait for a bundle of a broker that is not reached"),
      tile("Bundles", count(answer.bundles.length), "owned by this broker"));
    replace(brokers, answer.brokers.length ? brokersTable(answer) : empty("This broker is alone: it belongs to no cluster of brokers."));
    replace(owners, some(ownersOf(answer).filter(isWanted), [
      { title: "Bundle", cell: (row) => h("span", { class: "name" }, row.bundle) },
      { title: "Owner", cell: (row) => row.owner },
      { title: "Since", cell: (row) => (row.since === null ? h("span", { class: "muted", title: "its own console knows" }, "–") : when(row.since)) },
    ], "No bundle is like that."));
    replace(changes, some(answer.changes.filter(isWanted).reverse(), [
      { title: "When", cell: (row) => when(row.at) },
      { title: "", cell: (row) => badge(row.change, row.change === "gained" ? "good" : "warn") },
      { title: "Bundle", cell: (row) => h("span", { class: "name" }, row.bundle) },
      { title: "Why", cell: (row) => row.reason },
    ], "Nothing came or went."));
    replace(balancing, answer.isLeading || answer.balancing.length ? some(answer.balancing.filter(isWanted).reverse(), [
      { title: "When", cell: (row) => when(row.at) },
      { title: "", cell: (row) => badge(row.kind, row.error ? "bad" : "quiet") },
      { title: "Bundle", cell: (row) => h("span", { class: "name" }, row.bundle) },
      { title: "From, to", cell: (row) => [row.broker, row.destination].filter(Boolean).join(" → ") },
      { title: "Why", cell: (row) => [row.reason, row.error ? h("p", { class: "bad" }, row.error) : null] },
    ], "Nothing was moved or split by load.") : empty("The leader knows: " + (answer.leaderId || "there is none now") + "."));
  }

  replace(page.element, heading("Cluster"), tiles, card("Brokers", brokers), h("div", { class: "list-head" }, search),
    card("Who has what", owners), card("Gained and lost by this broker", changes), card("Moved and split by load", balancing));
  page.every(3000, async () => {
    try {
      answer = await api.get(api.ADMIN + "/brokers/load");
    } catch (error) {
      if (page.isShown) replace(tiles, problem(error));
      return;
    }
    if (page.isShown) draw();
  });
}
