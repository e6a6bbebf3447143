// What plans may cost where probabilities are intervals.
const LOOKS = [["var(--c0)", "6 4"], ["var(--c2)", ""], ["var(--c1)", "2 3"]];
const least = D.alphas[D.alphas.length - 1];
$("title").textContent = D.name;
$("lead").textContent = D.lead;
for (const element of document.querySelectorAll(".least")) element.textContent = tick(least);
fill($("numbers"), ...rows(["planned for", "alpha", "predicted", "least CVaR", "most CVaR", "least mean", "most mean"], D.plans));
fill($("words"), ...D.words.map(text => node("p", {}, text)));
if (D.harms === null) fill($("harms"), node("tr", {}, node("td", {}, "Some nature keeps this policy from arriving.")));
else fill($("harms"), ...rows(["at", "doing", "ends in", "low", "high", "worst", "adds to the mean"], D.harms));
$("data-card").hidden = D.data === null;
if (D.data !== null) fill($("more-data"), ...rows(["at", "doing", "CVaR if half as wide", "less by"], D.data));
const bands = (of, steps) => Object.entries(of).map(([name, points], k) => ({ name, points, colour: LOOKS[k % 3][0], dash: LOOKS[k % 3][1], steps }));
chart("tail", { bands: bands(D.tail, true), xlabel: "total cost z", ylabel: "probability of at most z" });
chart("curve", { bands: bands(D.curve), xlabel: "alpha", ylabel: "CVaR", xlog: true, xticks: D.alphas, from: "start" });
