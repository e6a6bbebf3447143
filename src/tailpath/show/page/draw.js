// What every page draws with. Names only ever become text nodes; nothing here makes markup of them.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const counted = D.costs ? ", " + D.costs : "";
function node(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function number(value, digits = 5) {
  if (value === null || value === undefined) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e7) return tick(value);
  return String(+value.toPrecision(digits));
}
const percent = value => number(100 * value, 3) + " %";
const fill = (element, ...children) => { element.replaceChildren(...children); };
const rows = (head, lines, digits = 6) => [node("tr", {}, ...head.map(text => node("th", {}, text))), ...lines.map(line => node("tr", {}, ...line.map(cell => node("td", {}, typeof cell === "string" ? cell : number(cell, digits)))))];
// ---------------------------------------------------------------- charts
// Lines have names at their ends: neither a legend nor colours are needed.
function chart(id, { lines = [], dots = [], marks = [], xlabel, ylabel, xlog, ylog, level, xticks, from = "end" }) {
  const W = 420, H = 280, left = 54, right = 16, top = 14, bottom = 44;
  const finite = (values, log) => values.filter(value => Number.isFinite(value) && (!log || value > 0));
  const xs = finite(lines.flatMap(line => line.points.map(p => p[0])).concat(dots.map(d => d.at[0]), marks.map(m => m.at)), xlog);
  const ys = finite(lines.flatMap(line => line.points.flatMap(p => p.slice(1))).concat(dots.map(d => d.at[1])), ylog);
  if (!xs.length || !ys.length) { fill($(id), "nothing to draw"); return; }
  const scale = (values, log, from, to) => {
    let low = Math.min(...values), high = Math.max(...values);
    if (log) { low = Math.log10(low); high = Math.log10(high); } else { const pad = 0.06 * (high - low || Math.abs(high) || 1); low = Math.max(low >= 0 ? 0 : -Infinity, low - pad); high += pad; }
    if (high - low < 1e-12) { low -= 0.5; high += 0.5; }
    return { to: value => from + (to - from) * ((log ? Math.log10(value) : value) - low) / (high - low), low, high, log };
  };
  const X = scale(xs, xlog, left, W - right), Y = scale(ys, ylog, H - bottom, top);
  const x = value => X.to(value).toFixed(1), y = value => Math.max(top, Y.to(value)).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, width: "100%", role: "img", "aria-label": `${ylabel} against ${xlabel}` });
  const ticks = axis => {
    if (axis.log) { const found = []; const every = Math.max(1, Math.ceil((axis.high - axis.low) / 6)); for (let e = Math.ceil(axis.low - 1e-9); e <= axis.high + 1e-9; e += every) found.push(10 ** e); return found; }
    const step = 10 ** Math.floor(Math.log10((axis.high - axis.low) / 4)), wide = [1, 2, 5, 10].map(f => f * step).find(s => (axis.high - axis.low) / s <= 5.5);
    axis.digits = Math.max(4, Math.ceil(Math.log10(Math.max(Math.abs(axis.low), Math.abs(axis.high)) / wide)) + 1);  // neighbours differ
    const found = []; for (let t = Math.ceil(axis.low / wide) * wide; t <= axis.high + 1e-9 * wide; t += wide) found.push(+t.toPrecision(10)); return found;
  };
  for (const t of xticks || ticks(X)) picture.append(svg("line", { x1: x(t), x2: x(t), y1: top, y2: H - bottom, stroke: "var(--line)" }), svg("text", { x: x(t), y: H - bottom + (marks.length ? 20 : 15), "font-size": 11, "text-anchor": "middle" }, tick(t, X.digits)));
  for (const t of ticks(Y)) picture.append(svg("line", { x1: left, x2: W - right, y1: y(t), y2: y(t), stroke: "var(--line)" }), svg("text", { x: left - 6, y: Y.to(t) + 4, "font-size": 11, "text-anchor": "end" }, tick(t, Y.digits)));
  if (level) picture.append(svg("line", { x1: left, x2: W - right, y1: y(level), y2: y(level), stroke: "var(--ink)", "stroke-width": 0.8, "stroke-dasharray": "1 3" }), svg("text", { x: left + 4, y: Y.to(level) - 4, "font-size": 11 }, `alpha ${tick(level)}`));
  const along = (points, steps) => points.map(([a, b], k) => k === 0 ? `${x(a)} ${y(b)}` : steps ? `H${x(a)}V${y(b)}` : `L${x(a)} ${y(b)}`).join("");
  for (const line of lines) {
    line.usable = line.points.filter(p => finite([p[0]], xlog).length && finite([p[1]], ylog).length);
    if (line.usable.length) picture.append(svg("path", { d: "M" + along(line.usable, line.steps), fill: "none", stroke: line.colour, "stroke-width": line.width || 2, "stroke-dasharray": line.dash || "" }));
  }
  for (const { at, colour, name, hollow } of dots) if (at.every(Number.isFinite)) picture.append(svg("circle", { cx: x(at[0]), cy: y(at[1]), r: 4.5, fill: hollow ? "var(--card)" : colour, stroke: hollow ? colour : "var(--card)", "stroke-width": hollow ? 1.6 : 1 }, svg("title", {}, name)));
  for (const { at, colour, name } of marks) if (Number.isFinite(at)) picture.append(svg("path", { d: `M${x(at)} ${H - bottom} l-4 9 h8 z`, fill: colour }, svg("title", {}, name)));
  const placed = [], ends = lines.filter(line => line.name && line.usable.length).map(line => [line, line.usable]).concat(dots.filter(dot => dot.label && dot.at.every(Number.isFinite)).map(dot => [{ ...dot, name: dot.label }, [dot.at]]));
  for (const [{ name, colour }, points] of ends) {
    const [at, value] = points.reduce((best, p) => (from === "end" ? p[0] > best[0] : p[0] < best[0]) ? p : best), wide = 6.2 * name.length;
    const centre = Math.min(W - right - wide / 2, Math.max(left + 4 + wide / 2, X.to(at) + (from === "end" ? -wide / 2 : wide / 2)));
    const wanted = Math.min(H - bottom - 4, Math.max(top + 8, +y(value) - 7));
    const free = height => height >= top + 8 && height <= H - bottom - 4 && !placed.some(each => Math.abs(each[0] - centre) < (each[2] + wide) / 2 && Math.abs(each[1] - height) < 12);
    const height = [0, 1, -1, 2, -2, 3, -3, 4, -4].map(k => wanted + 12 * k).find(free) ?? wanted;  // the nearest free line inside
    placed.push([centre, height, wide]);
    picture.append(svg("text", { x: centre, y: height, "font-size": 11, "text-anchor": "middle", class: "name", style: `fill:${colour}` }, name));
  }
  picture.append(svg("text", { x: (left + W - right) / 2, y: H - 6, "font-size": 12, "text-anchor": "middle" }, xlabel), svg("text", { x: 13, y: (top + H - bottom) / 2, "font-size": 12, "text-anchor": "middle", transform: `rotate(-90 13 ${(top + H - bottom) / 2})` }, ylabel));
  fill($(id), picture);
}
function tick(value, digits = 4) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) { const e = Math.floor(Math.log10(Math.abs(value)) + 1e-9), m = +(value / 10 ** e).toPrecision(3); return (m === 1 ? "" : m + "·") + "10" + [..."" + e].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join(""); }
  return String(+value.toPrecision(Math.min(digits, 12)));
}
