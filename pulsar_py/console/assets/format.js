// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function count(value) {
  return value === undefined || value === null ? "–" : whole.format(value);
}

/** A number in at most about four characters: 950, 12.3k, 4M. */
export function brief(value) {
  if (value === undefined || value === null) return "–";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(value) >= size * 10 || (Math.abs(value) >= size && unit !== "k")) return short.format(value / size) + unit;
  }
  return Math.abs(value) < 10 && value % 1 ? short.format(value) : whole.format(value);
}

export function rate(value) {
  return value === undefined || value === null ? "–" : brief(value) + "/s";
}

export function bytes(value) {
  if (value === undefined || value === null) return "–";
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (Math.abs(value) >= size) return short.format(value / size) + " " + unit;
  }
  return (Math.abs(value) < 10 && value % 1 ? short : whole).format(value) + " B";
}

export function time(text) {
  const date = new Date(text);
  if (!text || Number.isNaN(date.getTime())) return "–";
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60000);
  return local.toISOString().replace("T", " ").replace("Z", "");
}

export function ago(millis) {
  if (!millis) return "never";
  const seconds = Math.max(0, (Date.now() - millis) / 1000);
  if (seconds < 60) return Math.round(seconds) + " s ago";
  if (seconds < 3600) return Math.round(seconds / 60) + " min ago";
  if (seconds < 172800) return Math.round(seconds / 3600) + " h ago";
  return Math.round(seconds / 86400) + " days ago";
}

export function plural(number, one, many) {
  return count(number) + " " + (number === 1 ? one : many || one + "s");
}

export function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** `persistent://tenant/namespace/name` in parts; a name may contain slashes' codes. */
export function topicParts(full) {
  const found = /^(persistent|non-persistent):\/\/([^/]+)\/([^/]+)\/(.+)$/s.exec(full);
  return found ? found.slice(1) : ["persistent", "", "", full];
}
