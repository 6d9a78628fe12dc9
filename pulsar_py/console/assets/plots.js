// A plot of lines over time, drawn as SVG; it tells its last values to those who can't see it.

import { h, s, replace } from "./dom.js";

const WIDTH = 640;
const HEIGHT = 200;
const LEFT = 54;
const BOTTOM = 22;
const TOP = 10;

function top(value) {
  if (!(value > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((step) => step >= value);
}

/** `series` are {name, class, of(sample)}; `show(samples)` draws them. */
export function plot(title, series, text, mostMillis) {
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img" });
  const legend = h("div", { class: "legend" });
  const element = h("figure", { class: "plot-box" }, h("figcaption", {}, title), picture, legend);
  let shown = [];
  let spanMillis = 60000;

  function x(millis, end) {
    return LEFT + (WIDTH - LEFT - 6) * (1 - (end - millis) / spanMillis);
  }

  function draw(marked) {
    const end = shown.length ? shown[shown.length - 1].millis : Date.now();
    spanMillis = Math.min(mostMillis, Math.max(60000, shown.length ? end - shown[0].millis : 0));
    const samples = shown.filter((each) => each.millis >= end - spanMillis);
    const highest = top(Math.max(0, ...samples.flatMap((each) => series.map((line) => line.of(each)))));
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value / highest);
    const lines = series.map((line) => {
      const points = samples.map((each) => x(each.millis, end).toFixed(1) + "," + y(line.of(each)).toFixed(1));
      if (!points.length) return null;
      const area = `M${points[0].split(",")[0]},${y(0)} L${points.join(" L")} L${points[points.length - 1].split(",")[0]},${y(0)} Z`;
      return [s("path", { class: "area " + line.class, d: area }), s("polyline", { class: "line " + line.class, points: points.join(" ") })];
    });
    replace(picture,
      [0, 0.5, 1].map((share) => [
        s("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: y(highest * share), y2: y(highest * share) }),
        s("text", { class: "tick", x: LEFT - 8, y: y(highest * share) + 4, "text-anchor": "end" }, text(highest * share)),
      ]),
      [1, 0.5].map((share) => s("text", { class: "tick", x: x(end - spanMillis * share, end), y: HEIGHT - 5, "text-anchor": share === 1 ? "start" : "middle" }, spanMillis * share < 90000 ? `${Math.round(spanMillis * share / 1000)} s ago` : `${(spanMillis * share / 60000).toFixed(1).replace(".0", "")} min ago`)),
      s("text", { class: "tick", x: WIDTH - 6, y: HEIGHT - 5, "text-anchor": "end" }, "now"),
      lines,
      marked ? s("line", { class: "mark", x1: x(marked.millis, end), x2: x(marked.millis, end), y1: TOP, y2: HEIGHT - BOTTOM }) : null);
    const at = marked || samples[samples.length - 1];
    replace(legend, series.map((line) => h("span", { class: "key " + line.class }, line.name + " ", h("b", {}, at ? text(line.of(at)) : "–"))),
      marked ? h("span", { class: "muted" }, new Date(marked.millis).toLocaleTimeString()) : null);
    picture.setAttribute("aria-label", title + ": " + series.map((line) => line.name + " " + (at ? text(line.of(at)) : "unknown")).join(", "));
  }

  picture.addEventListener("pointermove", (event) => {
    if (!shown.length) return;
    const box = picture.getBoundingClientRect();
    const end = shown[shown.length - 1].millis;
    const place = (event.clientX - box.left) / box.width * WIDTH;
    const wanted = end - spanMillis * (1 - (place - LEFT) / (WIDTH - LEFT - 6));
    draw(shown.reduce((best, each) => Math.abs(each.millis - wanted) < Math.abs(best.millis - wanted) ? each : best));
  });
  picture.addEventListener("pointerleave", () => draw());
  element.show = (samples) => { shown = samples; draw(); };
  element.show([]);
  return element;
}
