// One subscription: why it stands still, its holes, its consumers, and moving it.

import { h, replace, to } from "./dom.js";
import * as api from "./api.js";
import { badge, button, card, crumbs, dialog, empty, heading, notice, pagedList, tabs, table, tile } from "./ui.js";
import { ago, brief, bytes, count, plural, rate, time, topicParts } from "./format.js";
import { holes } from "./holes.js";
import { messages } from "./messages.js";

export async function subscriptionPage(page, parts) {
  const [domain, tenant, namespace, topic, name, tab = "overview"] = parts;
  const place = [domain, tenant, namespace, topic];
  const full = `${domain}://${tenant}/${namespace}/${topic}`;
  const rights = await api.rights({ topic: full, subscription: name });
  const at = api.path(api.path(api.ADMIN, ...place), "subscription", name);
  const own = api.path(api.path(api.CONSOLE + "/topic", ...place), "subscription", name);
  const isStored = domain === "persistent";
  const items = [["overview", "Overview"], isStored && ["holes", "Holes"], isStored && rights.has("PEEK_SUBSCRIPTION") && ["messages", "Backlog"]].filter(Boolean);
  const body = h("div", {});
  const context = { place, full, at, own, rights, name, subscription: name };
  replace(page.element, crumbs(["Tenants", to("tenants")], [tenant, to("tenant", tenant)], [namespace, to("namespace", tenant, namespace)], [topic, to("topic", ...place)], [name]),
    heading(name, isStored ? actions(context) : null), tabs(items, tab, (each) => to("subscription", ...place, name, each)), body);
  if (tab === "messages") {
    context.beside = rights.has("CONSUME") ? button("Send back", () => sendBack(context), { title: "Send dead letters back to the topics that they come from" }) : null;
    return messages(body, context);
  }
  if (tab === "holes") return holePage(body, context);
  return overview(page, body, context);
}

async function holePage(body, { own, place, name }) {
  const answer = await api.get(own + api.query({ limit: 1 }));
  if (answer.parts.length === 1 && answer.parts[0].topic.endsWith("/" + place[3])) {
    replace(body, card(null, holes(own, place)));
    return;
  }
  const box = h("div", {});
  const choice = h("select", { "aria-label": "Partition", onchange: show }, answer.parts.map((part) => h("option", { value: part.topic }, part.topic.split("/").pop() + " – " + count(part.backlog) + " waiting")));
  function show() {
    const parts = topicParts(choice.value);
    replace(box, holes(api.path(api.path(api.CONSOLE + "/topic", ...parts), "subscription", name), parts));
  }
  replace(body, card(["Partition", choice], box));
  show();
}

function effects(lines) {
  return table([
    { title: "Topic", cell: (row) => row.topic.split("/").pop() },
    { title: "Backlog now", class: "number", cell: (row) => count(row.backlog) },
    { title: "then", class: "number", cell: (row) => count(row.backlogAfter) },
    { title: "Never delivered", class: "number", cell: (row) => row.acknowledges ? h("b", { class: "bad-text" }, count(row.acknowledges)) : "0" },
    { title: "Delivered again", class: "number", cell: (row) => row.redelivers ? h("b", { class: "warn-text" }, count(row.redelivers)) : "0" },
    { title: "Next", cell: (row) => h("code", {}, row.next) },
  ], lines);
}

async function confirmed(own, asked, title, confirm, name) {
  const lines = await api.get(own + "/preview" + api.query(asked));
  const lost = lines.reduce((sum, each) => sum + each.acknowledges, 0);
  const again = lines.reduce((sum, each) => sum + each.redelivers, 0);
  const cut = lines.reduce((sum, each) => sum + each.disconnects, 0);
  const told = [];
  if (lost) told.push(plural(lost, "entry", "entries") + " will not be delivered any more.");
  if (again) told.push(plural(again, "acknowledged entry", "acknowledged entries") + " will be delivered again.");
  if (cut) told.push(plural(cut, "consumer") + " will have to connect again.");
  if (!told.length) told.push("Nothing would change.");
  await dialog({ title, text: told.join(" "), body: effects(lines), confirm, danger: lost > 0, type: lost > 0 ? name : null });
}

function again() {
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function actions({ place, full, at, own, rights, name }) {
  const isDead = /-(DLQ|RETRY)(-partition-\d+)?$/.test(place[3]);
  return [
    rights.has("CONSUME") && isDead && button("Send back", () => sendBack({ own, full }), { class: "primary", title: "Send dead letters back to the topics that they come from" }),
    rights.has("SKIP") && button("Skip", async () => {
      const given = await dialog({ title: "Skip entries", confirm: "What would that do?", fields: [
        { name: "what", label: "Skip", kind: "select", options: ["a number of entries", "what is older than", "everything"] },
        { name: "count", label: "Entries, or seconds", kind: "number", value: 1, min: 1 }] });
      if (given.what === "everything") {
        await confirmed(own, { action: "clear" }, "Skip everything", "Skip", name);
        await api.post(at + "/skip_all");
      } else if (given.what === "what is older than") {
        await confirmed(own, { action: "expire", seconds: given.count }, "Skip what is older than " + given.count + " s", "Skip", name);
        await api.post(at + "/expireMessages/" + Number(given.count));
      } else {
        await confirmed(own, { action: "skip", count: given.count }, "Skip " + plural(Number(given.count), "entry", "entries"), "Skip", name);
        await api.post(at + "/skip/" + Number(given.count));
      }
      notice("The subscription has moved on.");
      again();
    }),
    rights.has("RESET_CURSOR") && button("Reset", async () => {
      const given = await dialog({ title: "Go to another place", confirm: "What would that do?", fields: [
        { name: "time", label: "A time", kind: "datetime-local" },
        { name: "id", label: "or an entry, as ledger:entry" }] });
      if (given.id) {
        const [ledgerId, entryId] = given.id.split(":").map(Number);
        await confirmed(own, { action: "reset", messageId: given.id }, "Go to " + given.id, "Reset", name);
        await api.post(at + "/resetcursor", { ledgerId, entryId, partitionIndex: -1 });
      } else {
        const timestamp = new Date(given.time).getTime();
        if (Number.isNaN(timestamp)) throw new Error("Give a time or an entry.");
        await confirmed(own, { action: "reset", timestamp }, "Go to " + time(timestamp), "Reset", name);
        await api.post(at + "/resetcursor/" + timestamp);
      }
      notice("The subscription was reset.");
      again();
    }),
    rights.has("UNSUBSCRIBE") && button("Delete", async () => {
      const given = await dialog({ title: "Delete subscription " + name, text: "What it has not consumed is lost to it.", confirm: "Delete", danger: true, type: name, fields: [{ name: "force", label: "Even if consumers are connected", kind: "checkbox" }] });
      await api.del(at + api.query({ force: given.force || "" }));
      notice("Subscription " + name + " was deleted.");
      location.hash = to("topic", ...place);
    }, { class: "danger" }),
  ];
}

async function sendBack({ own, full }) {
  const given = await dialog({ title: "Send dead letters back", confirm: "Send back", text: "The backlog of this subscription of " + full + " goes to the topic that each message comes from, in order. A message is acknowledged here once it is stored there.", fields: [
    { name: "most", label: "Messages at most", kind: "number", value: 1000, min: 1 },
    { name: "to", label: "To another topic", hint: "Leave it empty for the one that each message names (REAL_TOPIC)." }] });
  let left = Number(given.most);
  let sent = 0;
  for (;;) {
    const body = { limit: Math.min(left, 200) };
    if (given.to) body.to = given.to;
    const answer = await api.post(own + "/send-back", body);
    sent += answer.sent;
    left -= answer.sent;
    if (answer.skipped) throw new Error(plural(sent, "message") + " went back; then: " + answer.skipped);
    if (!answer.more || !answer.sent || left <= 0) break;
    notice(plural(sent, "message") + " went back so far");
  }
  notice(plural(sent, "message") + " went back.", "good");
  again();
}

async function overview(page, body, context) {
  const { own, at, rights } = context;
  const tiles = h("div", { class: "tiles" });
  const why = h("div", {});
  const properties = h("div", {});
  let asked = null;
  async function refresh(given) {
    asked = given;
    const answer = await api.get(own + api.query(given));
    replace(tiles,
      tile("Backlog", brief(answer.backlog), count(answer.backlog) + " entries", answer.backlog ? "" : "good"), tile("Waiting", bytes(answer.backlogBytes)), tile("Type", answer.type || "–"),
      tile("Unacknowledged", brief(answer.unacked), "sent to consumers, and not acknowledged"), tile("Delayed", brief(answer.delayed)), tile("Holes", brief(answer.holes), "ranges of acknowledged entries above the mark-delete position"),
      tile("Out", rate(answer.messageOutRate)), tile("Acknowledged", rate(answer.ackRate)), tile("Sent again", rate(answer.redeliverRate), null, answer.redeliverRate ? "warn" : ""),
      tile("Last sent", ago(answer.lastConsumedMillis)), tile("Last acknowledged", ago(answer.lastAckedMillis)));
    const reasons = answer.parts.flatMap((part) => (part.reasons || []).map((each) => ({ ...each, topic: part.topic })));
    replace(why, reasons.length ? h("ul", { class: "findings" }, reasons.slice(0, 50).map((each) => h("li", { class: "warning" }, badge(each.code, "warn"), h("div", {}, h("p", {}, each.message), answer.parts.length > 1 ? h("p", { class: "muted" }, each.topic) : null,
      each.code === "PAUSED" && rights.has("SKIP") ? button("Resume", async () => { await api.del(at + "/pause"); again(); }) : null)))) : empty(answer.backlog ? "Nothing holds it up." : "Nothing waits, and nothing holds it up."));
    const positions = answer.parts.filter((part) => part.cursor);
    replace(properties,
      positions.length ? card("Positions", table([
        { title: "Topic", cell: (row) => row.topic.split("/").pop() },
        { title: "Backlog", class: "number", cell: (row) => count(row.backlog) },
        { title: "Acknowledged up to", cell: (row) => h("code", {}, row.cursor.markDeletePosition) },
        { title: "Read up to", cell: (row) => h("code", {}, row.cursor.readPosition) },
        { title: "Last entry", cell: (row) => h("code", {}, row.cursor.lastPosition) }], positions)) : null,
      Object.keys(answer.properties).length ? card("Properties", h("dl", { class: "facts" }, Object.entries(answer.properties).map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]))) : null);
    return answer.consumerLines;
  }
  const list = pagedList({ label: "consumers", none: "No consumer is connected.", load: refresh, columns: [
    { title: "Consumer", cell: (row) => h("span", { class: "name" }, row.consumerName) },
    { title: "Out", class: "number", cell: (row) => rate(row.msgRateOut) },
    { title: "Unacknowledged", class: "number", cell: (row) => [count(row.unackedMessages), row.blockedConsumerOnUnackedMsgs ? badge("blocked", "bad") : null] },
    { title: "Permits", class: "number", cell: (row) => count(row.availablePermits) },
    { title: "Last acknowledged", class: "number", cell: (row) => ago(row.lastAckedTimestamp) },
    { title: "Address", cell: (row) => row.address },
    { title: "Client", cell: (row) => row.clientVersion },
  ] });
  replace(body, tiles, card(["What holds it up", rights.has("SKIP") && context.place[0] === "persistent" ? button("Pause", async () => { await api.put(at + "/pause"); again(); }, { title: "Send nothing to consumers until it is resumed" }) : null], why), card("Consumers", list), properties);
  await list.show();
  page.every(5000, async () => { if (asked && !document.querySelector("dialog[open]")) await list.show(); });
}
