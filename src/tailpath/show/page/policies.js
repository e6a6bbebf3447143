// What policies do, and why: moved by sliders.
// Where some cost is negative, a budget counts beyond the least cost to go.
const BEYOND = D.ahead ? " beyond the cheapest way" : "";
const LAST = D.names.length - 1;  // the optimum; the first is best on average, those between were asked for
const BETWEEN = [["var(--c1)", "2 3"], ["var(--c3)", "8 3 2 3"], ["var(--c4)", "4 2"], ["var(--c5)", "1 2"], ["var(--c6)", "10 4"]];
const look = k => k === LAST ? ["var(--c2)", ""] : k === 0 ? ["var(--c0)", "6 4"] : BETWEEN[(k - 1) % BETWEEN.length];
const COLOURS = D.names.map((_, k) => look(k)[0]);
const DASHES = D.names.map((_, k) => look(k)[1]);
const KINDS = { river: "#cfe6f7", bridge: "#d9b77e", bank: "#efe6cf", waterfall: "#6d93c4", floor: "#f4f4f1", obstacle: "#8b8f9a", goal: "#8fce9b", start: "#fbe3a6", hole: "#5b7fb0", "dead end": "#b9b3c6", lava: "#e8825a", cliff: "#a58a6f" };
const nearest = alpha => D.alphas.reduce((best, each, k) => Math.abs(Math.log(each / alpha)) < Math.abs(Math.log(D.alphas[best] / alpha)) ? k : best, 0);
const OTHERS = ["#e7e3f3", "#dfeee2", "#f6e2dc", "#e3edf3", "#f2ecd5"];
const state = { alpha: nearest(0.05), policy: LAST, memory: null, usual: true, colour: 0, run: 0, step: 0, timer: null };
const of = new Map(D.scene.places.map((place, k) => [place.state, k]));

// ---------------------------------------------------------------- small helpers
const here = () => D.cases[state.alpha][state.policy];
const table = () => D.tables[here().table];
const slides = () => table().remembers === "budget" || table().remembers === "atom";
const counts = (text, what) => `${text} ${text === "1" ? what.replace(/s$/, "") : what}`.trimEnd();  // 1 step, 2 steps
const whole = text => text.replaceAll(" %", "\u00a0%");  // no line begins with a sign
const amount = (value, digits) => counts(number(value, digits), D.costs);
function kindColour(kind) {
  if (KINDS[kind]) return KINDS[kind];
  if (!kind) return "#eef1f6";
  let sum = 0;
  for (const letter of kind) sum = (sum * 31 + letter.codePointAt(0)) % 997;
  return OTHERS[sum % OTHERS.length];
}
function position(k) {  // which of its choices the chosen policy takes at a shown state, with the memory of the slider
  const runs = table().decisions[k], met = here().met[k];
  const memory = !slides() ? 0 : state.usual ? (met ? met[1] : here().memory) : state.memory;
  let found = -1;
  for (const [from, at] of runs) { if (from <= memory) found = at; else break; }
  return found;
}

function likely(k) {  // how plainly to draw a decision: by how often a run is there; faintly where it never is
  const met = here().met[k];
  if (!met) return 0.1;
  if (!state.usual && slides() && !met[2].some(([from, to]) => from <= state.memory && state.memory <= to)) return 0.1;
  return Math.max(0.35, Math.min(1, 0.55 + 0.2 * Math.log10(Math.max(met[0], 1e-9)) + 0.45));
}
const idle = D.scene.choices.map(choices => choices.every(choice => JSON.stringify(choice.outcomes) === JSON.stringify(choices[0].outcomes)));  // nothing to decide

// ---------------------------------------------------------------- map and graph
const scene = { cells: [], arrows: [], labels: [], beside: false, edges: null, path: null, dwell: null, token: null };
function drawScene() {
  const { kind, places } = D.scene;
  let { width, height } = D.scene;
  const main = document.querySelector("main");
  // A wide graph needs the whole width, a map of few rows, too: nothing may be cut off.
  if (width > (kind === "map" ? 9 : 12) && (kind !== "map" || width > 1.5 * height)) main.className = "long";
  let narrow = kind === "map" && height > (width < 10 ? 1.2 : 2) * width;
  if (kind !== "map" && width > 1.2 * height && $("scene").clientWidth < 32 * width) {  // a long way in a narrow window goes down
    for (const place of places) [place.x, place.y] = [0.4 + 1.25 * place.y, 0.25 + place.x];
    [width, height] = [1.25 * height + 0.4, width + 0.6];
  }
  const beside = scene.beside = height > 1.2 * width;  // names stand beside a way that goes down, otherwise above
  let left = -0.1, right = width + 0.1;
  if (kind !== "map") places.forEach((place, k) => {  // names are inside, too: no letter is wider than 0.18
    const wide = 0.18 * Math.max(...[place, ...D.scene.choices[k]].map(each => short(each.name).length));
    left = Math.min(left, place.x - (beside ? 0.8 : wide / 2));
    right = Math.max(right, place.x + (beside ? 0.45 + wide : wide / 2));
  });
  width = right - left;
  narrow ||= beside && height > 8 && width < 10;
  if (narrow) {  // there is room for more beside it
    main.className = "tall";
    const side = node("div", { class: "side" });
    $("words-card").before(side);
    side.append($("words-card"), $("player-card"), $("numbers-card"), $("blame-card"));
    if (height > 20) {
      main.classList.add("deep");
      side.append(...document.querySelectorAll(".cards > *"));
    }
  }
  const picture = svg("svg", { viewBox: `${left} -0.1 ${width} ${height + 0.2}`, role: "img", class: kind, "aria-label": "the states and what the policy does there" });
  if (kind === "map") picture.style.maxWidth = `${Math.max(480, width * 46)}px`;
  else { picture.style.maxWidth = `${Math.max(360, width * 64)}px`; picture.style.maxHeight = height > 1.5 * width ? "none" : ""; }
  picture.append(svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 3.4, markerHeight: 3.4, orient: "auto-start-reverse" }, svg("path", { d: "M0 0 L10 5 L0 10 z", fill: "var(--ink)" }))));
  const edges = svg("g", {}), cells = svg("g", {}), arrows = svg("g", {});
  scene.edges = edges;
  places.forEach((place, k) => {
    const isStart = place.state === D.start;
    const border = { stroke: isStart ? (kind === "map" ? "var(--map-ink)" : "var(--ink)") : "#b9bfca", "stroke-width": isStart ? 0.09 : 0.025, fill: kindColour(place.kind) };
    const shape = kind === "map" ? svg("rect", { x: place.x - 0.5, y: place.y - 0.5, width: 1, height: 1, ...border }) : svg("circle", { cx: place.x, cy: place.y, r: 0.3, ...border });
    shape.append(svg("title", {}, place.name));
    scene.cells.push(shape);
    cells.append(shape);
    if (kind === "map") {
      const arrow = svg("path", { fill: "var(--map-ink)", d: "" });
      scene.arrows.push(arrow);
      const label = svg("text", { x: place.x, y: place.y + 0.13, "font-size": 0.36, "text-anchor": "middle" }, place.goal ? "goal" : "");
      scene.labels.push(label);
      arrows.append(arrow, label);
    } else {
      const [x, up, down] = beside ? [place.x + 0.42, 0.02, 0.28] : [place.x, 0.4, 0.62], own = { x, "text-anchor": beside ? "start" : "middle", class: "over" };
      const label = svg("text", { ...own, y: place.y - up, "font-size": 0.28 }, short(place.name));
      const action = svg("text", { ...own, y: place.y + down, "font-size": 0.25, style: "fill:var(--c2)" });
      scene.labels.push(action);
      arrows.append(label, action);
    }
  });
  if (kind === "map" && of.has(D.start)) cells.append(scene.cells[of.get(D.start)]);  // its frame lies over its neighbours
  const colour = kind === "map" ? "#b3124e" : "var(--run)";
  scene.path = svg("polyline", { fill: "none", stroke: colour, "stroke-width": 0.09, "stroke-linejoin": "round", opacity: 0.75 });
  scene.dwell = svg("g", { fill: colour });
  scene.token = svg("circle", { r: kind === "map" ? 0.24 : 0.17, fill: colour, stroke: "#fff", "stroke-width": 0.06, visibility: "hidden" });
  picture.append(edges, cells, arrows, scene.path, scene.dwell, scene.token);
  const { others, unmet } = D.scene;
  $("others-card").hidden = !unmet;
  $("others-card").firstChild.textContent = `${counts(unmet.toLocaleString("en"), "states")} that no ${D.simulated ? "simulated " : ""}run of these policies comes to`;
  $("others").textContent = others.join(", ") + (others.length < unmet ? ", …" : "");
  if (kind === "map") { const at = places[of.get(D.start)]; if (at) picture.append(svg("text", { x: at.x, y: at.y + 0.44, "font-size": 0.2, "text-anchor": "middle" }, "start")); }
  fill($("scene"), picture);
}
function drawLegend(most) {  // follows the colouring
  const { kind, places } = D.scene, legend = [];
  if (state.colour) for (const part of [0, 0.25, 1]) legend.push(node("span", {}, square(heat(part)), ` ${percent(part * most)}`));
  else for (const each of new Set(places.map(place => place.kind).filter(Boolean))) legend.push(node("span", {}, square(kindColour(each)), " " + each));
  if (state.colour) legend.push(node("span", {}, state.colour === 1 ? "of all setbacks" : "of the excess"));
  if (kind === "part") legend.push(node("span", {}, `${places.length} of ${D.states.toLocaleString("en")} states: those that are met most, or at which runs turn bad`));
  fill($("legend"), ...legend);
}
const heat = share => `rgb(${Math.round(255 - 40 * share)}, ${Math.round(255 - 205 * Math.sqrt(share))}, ${Math.round(255 - 215 * Math.sqrt(share))})`;
const square = colour => svg("svg", { class: "swatch square", viewBox: "0 0 10 10" }, svg("rect", { x: 0.5, y: 0.5, width: 9, height: 9, rx: 2, fill: colour, stroke: "#8b94a5", "stroke-width": 0.8 }));
const line = k => svg("svg", { class: "swatch", viewBox: "0 0 24 10", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 24, y1: 5, y2: 5, stroke: COLOURS[k], "stroke-width": 3, "stroke-dasharray": DASHES[k] }));
const short = name => name.length > 18 ? name.slice(0, 16) + "…" : name;
function arrowPath(place, k, at) {
  const moves = new Map();
  for (const [target, chance] of D.scene.choices[k][at].outcomes) { const to = D.scene.places[of.get(target)]; if (to && to !== place) moves.set(to, (moves.get(to) || 0) + chance); }
  const most = Math.max(...moves.values()), likeliest = [...moves].filter(([, chance]) => chance >= most * (1 - 1e-9)).map(([to]) => to);
  if (!likeliest.length) return null;
  const middle = axis => likeliest.reduce((sum, to) => sum + to[axis] - place[axis], 0) / likeliest.length;  // ice slips to either side
  const dx = middle("x"), dy = middle("y"), far = Math.hypot(dx, dy);
  if (far > 2.9 || far < 1e-9) return null;
  const ux = dx / far, uy = dy / far, point = (along, across) => `${(place.x + along * ux - across * uy).toFixed(3)} ${(place.y + along * uy + across * ux).toFixed(3)}`;
  return `M${point(-0.3, 0.045)} L${point(0.06, 0.045)} L${point(0.06, 0.15)} L${point(0.34, 0)} L${point(0.06, -0.15)} L${point(0.06, -0.045)} L${point(-0.3, -0.045)} z`;
}
function drawDecisions() {
  const { places, choices, kind } = D.scene;
  const blame = new Map(here().blame.map(([at, ...values]) => [at, values[state.colour - 1]]));
  const most = Math.max(1e-12, ...[...blame.values()].map(value => value || 0));
  drawLegend(most);
  if (kind !== "map") scene.edges.replaceChildren();
  places.forEach((place, k) => {
    const at = place.goal ? -1 : position(k);
    const cell = scene.cells[k];
    let colour = kindColour(place.kind), says = place.name + (place.kind ? `, ${place.kind}` : "");
    if (state.colour) {
      const value = Math.max(0, blame.get(place.state) || 0);
      if (value > 0 || !idle[k] || place.goal) colour = heat(value / most);
      says += `: ${percent(value)} of ${state.colour === 1 ? "all setbacks" : "the excess"}`;
    }
    cell.setAttribute("fill", colour);
    if (at >= 0) says += `: ${choices[k][at].name}`;
    cell.firstChild.textContent = says;
    if (kind === "map") {
      const path = at >= 0 && !idle[k] ? arrowPath(place, k, at) : null;
      scene.arrows[k].setAttribute("d", path || "");
      scene.arrows[k].setAttribute("opacity", likely(k));
      if (!place.goal) { const says = at >= 0 && !path && !idle[k] ? short(choices[k][at].name) : ""; scene.labels[k].textContent = says; scene.labels[k].setAttribute("font-size", Math.min(0.36, 1.6 / says.length)); scene.labels[k].setAttribute("opacity", likely(k)); }
    } else {
      scene.labels[k].textContent = at >= 0 ? short(choices[k][at].name) : "";
      drawEdges(place, k, at);
    }
  });
  $("scene").dataset.decisions = places.map((place, k) => place.goal ? "" : position(k)).join(",");
  const remembers = state.usual ? "" : table().atoms ? ` at y = ${number(table().atoms[state.memory] ?? 1, 3)}` : state.memory ? ` with ${amount((state.memory - table().spare) * table().unit)} left${BEYOND}` : " once the budget is spent";
  $("scene-title").textContent = `What the ${D.names[state.policy]} policy does${remembers}; faint where it never comes`;
}
function drawEdges(place, k, at) {
  D.scene.choices[k].forEach((choice, which) => {
    for (const [target, chance] of choice.outcomes) {
      const to = D.scene.places[of.get(target)];
      if (!to || to === place) continue;
      const chosen = which === at;
      if (!chosen && D.scene.places.length > 60) continue;
      const dx = to.x - place.x, dy = to.y - place.y, far = Math.hypot(dx, dy);
      const row = scene.beside && Math.abs(dy) < 0.5;  // round names and circles, not through them
      const bend = (row ? 0.45 : Math.abs(dx) < 0.5 ? 0.55 : 0.16) + 0.08 * which;
      const middle = [(place.x + to.x) / 2 - bend * dy / far * 2, (place.y + to.y) / 2 + bend * dx / far * 2];
      const towards = (at, by) => { const [x, y] = [middle[0] - at.x, middle[1] - at.y], length = Math.hypot(x, y); return [at.x + by * x / length, at.y + by * y / length]; };
      const from = towards(place, 0.3), end = towards(to, 0.36);
      scene.edges.append(svg("path", { d: `M${from} Q${middle} ${end}`, fill: "none", stroke: chosen ? "var(--ink)" : "var(--line)", "stroke-width": chosen ? 0.03 + 0.07 * chance : 0.025, opacity: chosen ? likely(k) : 1, ...(chosen ? { "marker-end": "url(#tip)" } : {}) },
        svg("title", {}, `${choice.name}: ${number(chance, 3)}`)));
    }
  });
}

// ---------------------------------------------------------------- charts
function drawCharts() {
  const row = D.cases[state.alpha], alpha = D.alphas[state.alpha], floor = D.alphas[D.alphas.length - 1] / 3;  // a sure end falls to the axis
  chart("tail", {
    lines: row.map((each, k) => ({ points: [[Math.min(0, each.costs[0] ?? 0), 1], ...each.costs.map((cost, i) => [cost, Math.max(each.tails[i], floor)])], colour: COLOURS[k], dash: DASHES[k], steps: true, name: D.names[k] })),
    dots: row.map((each, k) => ({ at: [each.var, Math.max(each.tails[each.costs.indexOf(each.var)] ?? alpha, floor)], colour: COLOURS[k], name: `VaR of ${D.names[k]}: ${number(each.var)}` })),
    marks: row.map((each, k) => ({ at: each.cvar, colour: COLOURS[k], name: `CVaR of ${D.names[k]}: ${number(each.cvar)}` })),
    xlabel: "total cost z" + counted, ylabel: "probability of more than z", ylog: true, level: alpha });
  const hollow = D.alphas.flatMap((a, i) => D.predicted[i].map((value, k) => ({ at: [a, value], colour: COLOURS[k], hollow: true, name: `predicted by ${D.names[k]}: ${number(value)}` }))).filter(dot => dot.at[1] !== null);
  chart("curve", {
    from: "start", lines: D.curves.map((points, k) => ({ points, colour: COLOURS[k], dash: DASHES[k], name: D.names[k] })),
    dots: [...row.map((each, k) => ({ at: [alpha, each.cvar], colour: COLOURS[k], name: `${D.names[k]}: ${number(each.cvar)}` })), ...hollow],
    xlabel: hollow.length ? "alpha (hollow: what the planner predicts)" : "alpha", ylabel: "CVaR" + counted, xlog: true });
  const points = [...D.frontier[state.alpha], ...row.map(each => [each.mean, each.cvar])];
  const one = points.every(point => point.every((value, k) => Math.abs(value - points[0][k]) <= 1e-9 * Math.abs(value)));
  $("frontier-legend").hidden = one;
  if (one) fill($("frontier"), `All of them have a mean of ${amount(points[0][0])} and a CVaR of ${amount(points[0][1])}: there is nothing to trade.`);
  else chart("frontier", {
    lines: [{ points: D.frontier[state.alpha], colour: "var(--quiet)", width: 2.5 }],
    dots: row.map((each, k) => ({ at: [each.mean, each.cvar], colour: COLOURS[k], label: D.names[k], name: `${D.names[k]}: mean ${number(each.mean)}, CVaR ${number(each.cvar)}` })),
    xlabel: "mean cost" + counted, ylabel: `CVaR at ${tick(alpha)}${counted}` });
}

// ---------------------------------------------------------------- numbers, words, blame
function drawNumbers() {
  const alpha = D.alphas[state.alpha];
  const head = node("tr", {}, ...["policy" + (D.costs ? ` (${D.costs})` : ""), "mean", `VaR at ${tick(alpha)}`, `CVaR at ${tick(alpha)}`, "above the optimum"].map(text => node("th", {}, text)));
  const rows = D.cases[state.alpha].map((each, k) => {
    const entry = node("tr", { "data-policy": k }, node("td", {}, line(k), " " + D.names[k]), ...[each.mean, each.var, each.cvar].map(value => node("td", {}, number(value))), node("td", {}, number(each.above, 3)));
    if (k === state.policy) entry.className = "chosen";
    return entry;
  });
  fill($("numbers"), head, ...rows);
  const words = D.words[state.alpha].map(text => node("p", {}, whole(text)));
  fill($("words"), ...words.slice(0, 5), ...(words.length > 5 ? [node("details", {}, node("summary", {}, "more"), ...words.slice(5))] : []));
  const { sentence, numbers } = D.headlines[state.alpha];
  $("headline").textContent = whole(sentence);
  fill($("large"), ...numbers.map(([value, text]) => node("div", {}, node("strong", {}, amount(value, 4)), node("span", {}, text))));
  const blamed = here().blamed;
  $("blame-card").hidden = !blamed.length;
  fill($("blamed"), node("tr", {}, ...["at", "doing", "ends in", "part in it"].map(text => node("th", {}, text))),
    ...blamed.map(([from, action, to, cost, share]) => node("tr", {}, ...[from, action, to, percent(share)].map(text => node("td", {}, text)))));
}

// ---------------------------------------------------------------- runs
function drawRun() {
  const runs = here().runs, run = runs[state.run];
  $("player-card").hidden = false;
  $("run").replaceChildren(...runs.map((each, k) => node("option", { value: k }, `${each.typical ? "typical" : "probable, " + (k + 1 - runs[0].typical)}: ${each.cost === null ? "never arrives" : "cost " + number(each.cost)}, chance ${number(each.probability, 2)}`)));
  for (const id of ["back", "forward", "play", "step", "run"]) $(id).disabled = !run;
  for (const id of ["run", "step"]) $(id).parentNode.hidden = !run;
  if (!run) {
    const why = here().chance === null ? "Too large a model to look at run by run." : "No run costs more than VaR.";
    $("run-printed").textContent = $("step-words").textContent = why;
    scene.path.setAttribute("points", ""); scene.dwell.replaceChildren(); scene.token.setAttribute("visibility", "hidden");
    return;
  }
  $("run").value = state.run;
  $("step").max = run.actions.length;
  $("step").value = state.step;
  const places = run.states.map(at => D.scene.places[of.get(at)]);
  scene.path.setAttribute("points", places.slice(0, state.step + 1).filter(Boolean).map(place => `${place.x},${place.y}`).join(" "));
  const met = new Map();
  for (const place of places.slice(0, state.step + 1)) if (place) met.set(place, (met.get(place) || 0) + 1);
  scene.dwell.replaceChildren(...[...met].filter(([, times]) => times > 1).flatMap(([place, times]) => [  // its area is how often it was there
    svg("circle", { cx: place.x, cy: place.y, r: Math.min(0.48, 0.1 * Math.sqrt(times)), opacity: 0.45 }),
    svg("text", { x: place.x + 0.46, y: place.y - 0.24, "font-size": 0.3, "text-anchor": "end", class: "over dwell" }, `×${times}`)]));
  const now = places[state.step];
  scene.token.setAttribute("visibility", now ? "visible" : "hidden");
  if (now) { scene.token.setAttribute("cx", now.x); scene.token.setAttribute("cy", now.y); }
  const paid = run.costs.slice(0, state.step).reduce((sum, cost) => sum + cost, 0);
  const before = state.step ? `After ${state.step} of ${run.actions.length} steps, ${amount(paid)} paid` : `Before the first of ${run.actions.length} steps`;
  const next = state.step < run.actions.length ? `: at ${run.names[state.step]}${run.memories[state.step] ? ` (${run.memories[state.step]})` : ""}, it does ${run.actions[state.step]}, which costs ${amount(run.costs[state.step])} and ends in ${run.names[state.step + 1]}.` : `: it ends in ${run.names[state.step]}.`;
  $("step-words").textContent = before + next;
  const way = [];
  for (const name of run.names) if (way.length && way.at(-1)[0] === name) way.at(-1)[1]++; else way.push([name, 1]);
  $("run-printed").textContent = `${run.typical ? "A typical one" : "The most probable"}: ${way.slice(0, 60).map(([name, times]) => name + (times > 1 ? ` ×${times}` : "")).join(" → ")}${way.length > 60 ? " → …" : ""}; ${run.cost === null ? "never arrives" : amount(run.cost)}.`;
}
function go(step) {
  const run = here().runs[state.run];
  if (!run) return;
  state.step = Math.max(0, Math.min(run.actions.length, step));
  if (table().remembers === "budget") {  // it follows the run
    const paid = run.costs.slice(0, state.step).reduce((sum, cost) => sum + cost, 0);
    const ahead = D.ahead ? D.ahead[run.states[state.step]] - D.ahead[D.start] : 0;
    state.memory = Math.max(0, here().memory - Math.round((paid + ahead) / table().unit));
    state.usual = state.step === 0;
    showMemory();
    drawDecisions();
  }
  drawRun();
}
function stop() { clearInterval(state.timer); state.timer = null; $("play").textContent = "play"; }
function play() {
  if (state.timer) { stop(); return; }
  const run = here().runs[state.run];
  if (!run) return;
  if (state.step >= run.actions.length) go(0);
  $("play").textContent = "pause";
  state.timer = setInterval(() => { if (state.step >= run.actions.length) stop(); else go(state.step + 1); }, 450);
}

// ---------------------------------------------------------------- controls
function showMemory() {
  const slider = $("memory"), { remembers, atoms, unit, spare } = table();
  slider.disabled = $("usual").disabled = !slides();
  slider.max = remembers === "budget" ? Math.max(...D.cases.map(row => row[state.policy].memory)) : atoms ? atoms.length - 1 : 0;
  slider.value = state.memory;
  $("usual").checked = state.usual || !slides();
  $("memory-label").textContent = atoms ? "the atom y it remembers" : "budget left";
  $("memory-value").textContent = remembers === "nothing" ? "it remembers nothing" : remembers === "more" ? "it remembers something else" : atoms ? number(atoms[state.memory], 3) : state.memory ? amount((state.memory - spare) * unit) + BEYOND : "spent";
}
function refresh() {
  stop();
  const alpha = D.alphas[state.alpha];
  $("alpha").value = state.alpha;
  $("alpha-value").textContent = `${tick(alpha)}, the worst ${percent(alpha)}`;
  $("printed").textContent = `Shown: the worst ${percent(alpha)} of runs (alpha ${tick(alpha)}), the ${D.names[state.policy]} policy.`;
  $("alpha").setAttribute("aria-valuetext", String(alpha));
  state.memory = here().memory; state.usual = true; state.run = 0; state.step = 0;
  for (const input of document.querySelectorAll("#policies input")) input.checked = +input.value === state.policy;
  showMemory(); drawDecisions(); drawNumbers(); drawCharts(); drawRun();
}
$("title").textContent = D.name;
document.title = D.name;
const between = D.names.slice(1, -1).join(", ");
$("lead").textContent = `${D.states.toLocaleString("en")} states, ${D.choices.toLocaleString("en")} choices. Compared: the policy that is best on average, ${between ? between + ", " : ""}and the one with the least CVaR at the chosen alpha. Move alpha to care about fewer, worse runs.`;
$("exact").textContent = (D.simulated ? `VaR, CVaR and mean are exact up to rounding. Where runs get to, the bad runs and where the excess is paid are estimated from ${D.simulated.toLocaleString("en")} simulated runs.` : "All numbers are exact up to rounding; nothing here is sampled, but for the run that is called typical, which is drawn from the law of bad runs.") + (D.delta ? ` Costs are rounded up to multiples of ${number(D.delta)}, so no number here is too small.` : "");
$("frontier-legend").textContent = `grey: what ${D.weights + 2} weighted sums of mean and CVaR achieve, each point exact; between two of them the best trade-off lies on the line or below it`;
$("alpha").max = D.alphas.length - 1;
fill($("alpha-stops"), ...D.alphas.map((alpha, k) => node("option", { value: k, label: percent(alpha) })));
fill($("stops"), ...D.alphas.map((alpha, k) => { const stop = node("span", {}, percent(alpha)); stop.style.left = `${100 * k / Math.max(1, D.alphas.length - 1)}%`; return stop; }));
if (window.innerWidth < 620) for (const fold of document.querySelectorAll("main details.card")) fold.open = false;
window.addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll("details")) fold.open = true; });
fill($("policies"), ...D.names.map((name, k) => {
  return node("label", {}, node("input", { type: "radio", name: "policy", value: k }), line(k), name);
}));
drawScene();
refresh();
$("alpha").addEventListener("input", event => { state.alpha = +event.target.value; refresh(); });
$("policies").addEventListener("change", event => { state.policy = +event.target.value; refresh(); });
$("memory").addEventListener("input", event => { state.memory = +event.target.value; state.usual = false; showMemory(); drawDecisions(); });
$("usual").addEventListener("change", event => { state.usual = event.target.checked; showMemory(); drawDecisions(); });
$("colour").addEventListener("change", event => { state.colour = +event.target.value; drawDecisions(); });
$("run").addEventListener("change", event => { stop(); state.run = +event.target.value; go(0); });
$("step").addEventListener("input", event => { stop(); go(+event.target.value); });
$("back").addEventListener("click", () => { stop(); go(state.step - 1); });
$("forward").addEventListener("click", () => { stop(); go(state.step + 1); });
$("play").addEventListener("click", play);
