// One topic: its figures, subscriptions, producers, partitions; messages, policies and the rest.

import { h, replace, to } from "./dom.js";
import * as api from "./api.js";
import { badge, button, card, crumbs, dialog, empty, heading, notice, pagedList, tabs, table, tile } from "./ui.js";
import { ago, brief, bytes, count, plural, rate, topicParts } from "./format.js";
import { messages } from "./messages.js";
import { policies } from "./policies.js";
import { permissions } from "./permissions.js";
import { schemas } from "./schemas.js";

export function subscriptionColumns(place) {
  return [
    { title: "Subscription", cell: (row) => [h("a", { href: to("subscription", ...place, row.name), class: "name" }, row.name), " ", row.backlog && row.standing.length ? badge("stands still", "warn", row.standing.join(", ")) : null, row.isDurable ? null : badge("not durable")] },
    { title: "Type", cell: (row) => row.type || "–" },
    { title: "Backlog", class: "number", cell: (row) => h("span", { title: count(row.backlog) + " entries, about " + bytes(row.backlogBytes) }, brief(row.backlog)) },
    { title: "Unacknowledged", class: "number", cell: (row) => brief(row.unacked) },
    { title: "Holes", class: "number", cell: (row) => brief(row.holes) },
    { title: "Out", class: "number", cell: (row) => rate(row.messageOutRate) },
    { title: "Consumers", class: "number", cell: (row) => count(row.consumers) },
    { title: "Last acknowledged", class: "number", cell: (row) => ago(row.lastAckedMillis) },
  ];
}

export async function topicPage(page, parts) {
  const [domain, tenant, namespace, name, tab = "overview"] = parts;
  const place = [domain, tenant, namespace, name];
  const full = `${domain}://${tenant}/${namespace}/${name}`;
  const rights = await api.rights({ topic: full });
  const at = api.path(api.ADMIN, ...place);
  const own = api.path(api.CONSOLE + "/topic", ...place);
  const context = { place, full, at, own, rights };
  const items = [["overview", "Overview"], rights.has("PEEK_MESSAGES") && domain === "persistent" && ["messages", "Messages"], ["schemas", "Schemas"],
    rights.has("READ_TOPIC_POLICY") && ["policies", "Policies"], rights.has("READ_PERMISSIONS") && ["permissions", "Permissions"], domain === "persistent" && ["storage", "Storage"]].filter(Boolean);
  const head = h("div", {});
  const body = h("div", {});
  replace(page.element, crumbs(["Tenants", to("tenants")], [tenant, to("tenant", tenant)], [namespace, to("namespace", tenant, namespace)], [name]), head,
    tabs(items, tab, (each) => to("topic", ...place, each)), body);
  replace(head, heading(name, actions(context, 0)));
  if (tab === "messages") return messages(body, context);
  if (tab === "schemas") return schemas(body, context);
  if (tab === "policies") return policies(body, { topic: place, rights });
  if (tab === "permissions") return permissions(body, { base: at + "/permissions", mayWrite: rights.has("WRITE_PERMISSIONS") });
  if (tab === "storage") return storage(body, context);
  return overview(page, head, body, context);
}

function actions({ place, full, at, own, rights }, partitions) {
  const [, tenant, namespace, name] = place;
  return [
    rights.has("PRODUCE") && button("Send a message", () => sendMessage(own, full), { class: "primary" }),
    rights.has("SUBSCRIBE") && place[0] === "persistent" && button("New subscription", async () => {
      const given = await dialog({ title: "New subscription", confirm: "Create", fields: [
        { name: "name", label: "Name", required: true },
        { name: "start", label: "Begins with", kind: "select", options: ["the next message", "the oldest message"] }] });
      const isOldest = given.start.endsWith("oldest message");
      await api.put(api.path(at + "/subscription", given.name), isOldest ? { ledgerId: -1, entryId: -1 } : undefined);
      notice("Subscription " + given.name + " was created.");
      location.hash = to("subscription", ...place, given.name);
    }),
    rights.has("UPDATE_PARTITIONS") && partitions > 0 && button("More partitions", async () => {
      const given = await dialog({ title: "More partitions", text: "Partitions can't be taken away again, and messages with a key may go to others than before.", confirm: "Grow", fields: [{ name: "count", label: "Partitions in all", kind: "number", value: partitions + 1, min: partitions + 1 }] });
      await api.post(at + "/partitions", Number(given.count));
      notice("The topic has " + given.count + " partitions.");
      dispatchEvent(new HashChangeEvent("hashchange"));
    }),
    rights.has("DELETE_TOPIC") && button("Delete", async () => {
      const given = await dialog({ title: "Delete topic " + name, text: "Its messages and subscriptions are deleted with it" + (partitions ? ", of all " + plural(partitions, "partition") : "") + ".", confirm: "Delete", danger: true, type: name,
        fields: [{ name: "force", label: "Even if clients are connected", kind: "checkbox" }] });
      await api.del(at + (partitions ? "/partitions" : "") + api.query({ force: given.force || "" }));
      notice("Topic " + name + " was deleted.");
      location.hash = to("namespace", tenant, namespace);
    }, { class: "danger" }),
  ];
}

async function sendMessage(own, full) {
  const given = await dialog({ title: "Send a message", text: "To " + full, confirm: "Send", fields: [
    { name: "form", label: "The value is", kind: "select", options: ["text", "JSON, encoded by the topic's schema", "base64"] },
    { name: "value", label: "Value", kind: "area" },
    { name: "key", label: "Key" },
    { name: "properties", label: "Properties", kind: "area", rows: 2, hint: "One a line: name=value" },
    { name: "delay", label: "Deliver after, seconds", kind: "number", min: 0 }] });
  const properties = {};
  for (const line of given.properties.split("\n")) {
    const [name, ...rest] = line.split("=");
    if (name.trim()) properties[name.trim()] = rest.join("=");
  }
  const body = { properties };
  if (given.key) body.key = given.key;
  if (given.delay) body.deliverAfterSeconds = Number(given.delay);
  if (given.form === "text") body.text = given.value;
  else if (given.form === "base64") body.base64 = given.value;
  else body.value = JSON.parse(given.value);
  const answer = await api.post(own + "/message", body);
  notice("The broker stored it as " + answer.messageId + ".");
}

async function overview(page, head, body, context) {
  const { place, own } = context;
  const tiles = h("div", { class: "tiles" });
  const producers = h("div", {});
  const partitions = h("div", {});
  let known = -1;
  let load = null;
  async function refresh(asked) {
    const answer = await api.get(own + api.query(asked));
    const totals = answer.totals;
    replace(tiles,
      tile("Messages in", rate(totals.messageInRate), "mean of the last minute"), tile("Messages out", rate(totals.messageOutRate), "mean of the last minute"),
      tile("Came in", brief(totals.messagesIn), count(totals.messagesIn) + " messages since the topic was loaded"), tile("Went out", brief(totals.messagesOut), count(totals.messagesOut) + " messages"),
      tile("Stored", bytes(totals.storageBytes)), tile("Waiting", bytes(totals.backlogBytes), "of the slowest subscription"),
      tile("Producers", count(totals.producers)), answer.ledger ? tile("Entries", brief(answer.ledger.entries), count(answer.ledger.entries) + " from " + answer.ledger.firstPosition + " to " + answer.ledger.lastPosition) : tile("Partitions", count(answer.partitions)),
      answer.ledger && answer.ledger.isTerminated ? tile("State", "terminated", "Nothing more is published", "warn") : null);
    if (known !== answer.partitions) {
      known = answer.partitions;
      replace(head, heading(place[3], actions(context, known)));
    }
    replace(producers, answer.producers.length ? table([
      { title: "Producer", cell: (row) => h("span", { class: "name" }, row.producerName) },
      { title: "Rate", class: "number", cell: (row) => rate(row.msgRateIn) },
      { title: "Address", cell: (row) => row.address },
      { title: "Client", cell: (row) => row.clientVersion },
      { title: "Connected since", cell: (row) => row.connectedSince },
    ], answer.producers) : empty("Nobody publishes now."));
    replace(partitions, answer.partitionLines.length ? card("Partitions", table([
      { title: "Partition", cell: (row) => h("a", { href: to("topic", ...topicParts(row.name)), class: "name" }, row.name.split("/").pop()) },
      { title: "In", class: "number", cell: (row) => rate(row.messageInRate) },
      { title: "Out", class: "number", cell: (row) => rate(row.messageOutRate) },
      { title: "Stored", class: "number", cell: (row) => bytes(row.storageBytes) },
      { title: "Waiting", class: "number", cell: (row) => bytes(row.backlogBytes) },
    ], answer.partitionLines)) : null);
    return answer.subscriptions;
  }
  const list = pagedList({ label: "subscriptions", none: "Nobody has subscribed. Messages that no subscription waits for are not kept.", load: (asked) => { load = asked; return refresh(asked); }, columns: subscriptionColumns(place) });
  replace(body, tiles, card("Subscriptions", list), card("Producers", producers), partitions);
  await list.show();
  page.every(5000, async () => { if (load && !document.querySelector("dialog[open]")) await list.show(); });
}

async function storage(body, { at, own }) {
  const shown = await api.get(own + api.query({ limit: 1 }));
  if (shown.partitions) {
    replace(body, empty("Partitions have their own ledgers: choose one on the overview."));
    return;
  }
  const stats = await api.get(at + "/internalStats");
  const ledgers = stats.ledgers.slice(-500).reverse();
  replace(body, h("div", { class: "tiles" }, tile("Entries", count(stats.numberOfEntries)), tile("Size", bytes(stats.totalSize)), tile("Ledgers", count(stats.ledgers.length)), tile("State", stats.state)),
    card("Ledgers, the newest first", table([
      { title: "Ledger", cell: (row) => h("code", {}, row.ledgerId) },
      { title: "Entries", class: "number", cell: (row) => count(row.entries || (row === ledgers[0] ? stats.currentLedgerEntries : 0)) },
      { title: "Size", class: "number", cell: (row) => bytes(row.size || (row === ledgers[0] ? stats.currentLedgerSize : 0)) },
    ], ledgers)));
}
