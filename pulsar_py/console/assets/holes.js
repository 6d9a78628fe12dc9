// The picture of acknowledgement holes: cells that the server counted, to go deeper into.

import { h, s, replace, to } from "./dom.js";
import * as api from "./api.js";
import { button, empty, problem } from "./ui.js";
import { brief, count, plural } from "./format.js";

const SIZE = 12;

/** `own` is the subscription's address among the console's calls, on a topic without partitions. */
export function holes(own, place) {
  const box = h("div", { class: "holes" });
  const COLUMNS = matchMedia("(max-width: 720px)").matches ? 30 : 60;
  const stack = [];
  let at = {};

  async function show() {
    let answer;
    try {
      answer = await api.get(own + "/holes" + api.query({ ...at, cells: COLUMNS * 10 }));
    } catch (error) {
      replace(box, problem(error));
      return;
    }
    if (!answer.entries) {
      replace(box, empty("Nothing waits: every entry up to " + answer.end + " is acknowledged."));
      return;
    }
    const rows = Math.ceil(answer.cells.length / COLUMNS);
    const told = h("p", { class: "told", "aria-live": "polite" });
    const a = Math.max(...answer.cells.map((each) => each[0]));
    const read = answer.starts.filter((each) => isBefore(each, answer.read)).length - 1;

    function span(index) {
      const last = index + 1 < answer.starts.length ? before(answer.starts[index + 1]) : answer.last;
      return [answer.starts[index], last];
    }
    function tell(index) {
      const [entries, done] = answer.cells[index];
      const [first] = span(index);
      replace(told, entries === 1
        ? ["Entry ", h("b", {}, first), done ? " is acknowledged." : " waits."]
        : [plural(entries, "entry", "entries"), " from ", h("b", {}, first), " on: ", count(done), " acknowledged, ", h("b", {}, count(entries - done)), " waiting."],
      index === read ? " Reading goes on here." : "");
    }
    function go(index) {
      const [entries] = answer.cells[index];
      const [first, last] = span(index);
      if (entries === 1) {
        location.hash = to("topic", ...place, "messages") + "/" + encodeURIComponent(first);
        return;
      }
      stack.push(at);
      at = { first, last: last || "" };
      show();
    }
    let marked = 0;
    const cells = answer.cells.map(([entries, done], index) => {
      const level = done === entries ? 10 : Math.min(9, Math.floor(10 * done / entries));
      const cell = s("rect", { class: "hole hole-" + level + (index === read ? " reading" : ""), x: (index % COLUMNS) * SIZE + 1, y: Math.floor(index / COLUMNS) * SIZE + 1, width: SIZE - 2, height: SIZE - 2, rx: 2,
        onpointerenter: () => mark(index), onclick: () => go(index) });
      return cell;
    });
    function mark(index) {
      cells[marked].classList.remove("marked");
      marked = index;
      cells[marked].classList.add("marked");
      tell(index);
    }
    const picture = s("svg", { class: "hole-picture", viewBox: `0 0 ${COLUMNS * SIZE} ${rows * SIZE}`, tabindex: 0, role: "application",
      "aria-label": `Acknowledgement holes: ${count(answer.acknowledged)} of ${count(answer.entries)} entries are acknowledged. Arrow keys go along, Enter goes deeper.`,
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: COLUMNS, ArrowUp: -COLUMNS }[event.key];
        if (step) {
          event.preventDefault();
          mark(Math.min(Math.max(marked + step, 0), cells.length - 1));
        } else if (event.key === "Enter") go(marked);
      } }, cells);
    replace(box,
      h("div", { class: "hole-head" },
        h("p", {}, h("b", {}, count(answer.entries)), " entries from ", h("code", {}, answer.first), " to ", h("code", {}, answer.last), ": ", h("b", {}, count(answer.acknowledged)), " acknowledged, ", h("b", {}, count(answer.entries - answer.acknowledged)), " waiting, ", plural(answer.holes, "range"), " in all.",
          a > 1 ? h("span", { class: "muted" }, ` A square is up to ${brief(a)} entries.`) : ""),
        h("div", { class: "actions" },
          button("Out", async () => { at = stack.pop() || {}; await show(); }, { disabled: !stack.length }),
          button("Anew", show))),
      picture, told,
      h("div", { class: "legend" }, [["hole-0", "waiting"], ["hole-5", "in part"], ["hole-10", "acknowledged"], ["hole-0 reading", "read position"]].map(
        ([kind, word]) => h("span", { class: "hole-word" }, h("span", { class: "hole-key " + kind }), word))));
    tell(0);
  }
  show();
  box.show = show;
  return box;
}

function isBefore(one, other) {
  const [a, b] = one.split(":").map(BigInt);
  const [c, d] = other.split(":").map(BigInt);
  return a < c || (a === c && b <= d);
}

/** The position before another one; "" if it is in the ledger before, where the server knows. */
function before(position) {
  const [ledger, entry] = position.split(":");
  return BigInt(entry) > 0n ? ledger + ":" + (BigInt(entry) - 1n) : ledger - 1 + ":4294967295";
}
