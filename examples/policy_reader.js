// Follow a saved policy without tailpath: every kind of `policy.json`, in plain JavaScript.
//
//   const run = new Run(JSON.parse(text));
//   const action = run.action(state);     // what to do here
//   run.observe(cost, nextState);         // what that cost, and where it led
//
// Costs are 0 or more, as those of the model. In a browser: <script src="policy_reader.js">; in Node:
// const { Run } = require("./policy_reader.js"). The same in Python: plain_policy_reader.py.
"use strict";

class Run {
  constructor(policy, random = Math.random) {
    this.random = random;
    this.arrays = policy.arrays || {};
    if (policy.kind === "mixed") {  // a coin at the start decides whom to follow
      const number = this.drawn(policy.weights.map((weight, k) => [k, weight])), mark = `${number}_`;
      const own = Object.entries(this.arrays).filter(([key]) => key.startsWith(mark));
      this.arrays = Object.fromEntries(own.map(([key, array]) => [key.slice(mark.length), array]));
      policy = policy.members[number];
    }
    this.policy = policy;
    this.kind = policy.kind;
    this.memory = this.kind === "memory" ? policy.start : this.kind === "budget steps" ? policy.budget : null;
    this.named = this.kind === "markov" || this.kind === "memory";
    if (this.named) {
      this.rules = new Map(policy.decisions.map(row => [Run.key(row.slice(0, -1)), [[row.at(-1), 1]]]));
      for (const row of policy.mixed) {
        const key = Run.key(row.slice(0, -2));
        this.rules.set(key, [...(this.rules.get(key) || []), row.slice(-2)]);
      }
      this.remember = new Map((policy.remember || []).map(row => [Run.key(row.slice(0, 5)), row[5]]));
    } else {
      const names = listed => Array.isArray(listed) ? listed : [...Array(listed).keys()];
      this.actions = names(policy.actions);
      this.number = new Map(names(policy.states).map((state, s) => [Run.key(state), s]));
    }
  }
  static key(name) { return JSON.stringify(name); }  // lists are names, too
  drawn(shares) {
    let left = this.random() * shares.reduce((sum, [, share]) => sum + share, 0);
    for (const [value, share] of shares) if ((left -= share) < 0) return value;
    return shares.at(-1)[0];
  }

  // What to do in a state; null where nothing is to be decided.
  action(state) {
    this.state = state;
    if (this.named) {
      const rule = this.rules.get(Run.key(this.kind === "markov" ? [state] : [state, this.memory]));
      return this.taken = rule ? this.drawn(rule) : null;
    }
    const choice = this.choice(this.number.get(Run.key(state)));
    return this.taken = choice >= 0 ? this.actions[this.arrays.choice_action[choice]] : null;
  }
  choice(s) {
    const { first, from_budget, choice, risk_neutral, atoms } = this.arrays;
    if (this.kind === "budget steps") {  // the last step up to the budget left; below the first one that of the least mean
      let found = risk_neutral[s];
      for (let step = first[s]; step < first[s + 1] && from_budget[step] <= this.memory; step++) found = choice[step];
      return found;
    }
    if (this.memory === null) this.memory = this.nearest(s, atoms[this.policy.start_atom]);
    return choice[s][this.memory];
  }
  nearest(s, y) {  // the atom of a state that is nearest to y, on a logarithmic scale
    const { atoms, own, of_state } = this.arrays;
    const mine = [...atoms.keys()].filter(k => this.kind === "atom" || own[of_state[s]][k]);
    const at = mine.slice(1).findIndex((k, before) => y <= Math.sqrt(atoms[mine[before]] * atoms[k]));
    return at < 0 ? mine.at(-1) : mine[at];
  }

  // What the action cost, and where it led.
  observe(cost, nextState) {
    if (this.kind === "memory") {
      this.memory = this.remember.get(Run.key([this.memory, this.state, this.taken, cost, nextState]));
    } else if (this.kind === "budget steps") {
      this.memory = Math.max(0, this.memory - Run.units(cost, this.policy.unit));
    } else if (this.kind !== "markov") {
      const { atoms, choice, choice_outcomes, outcome_target, outcome_cost, xi, xi_offset } = this.arrays;
      const s = this.number.get(Run.key(this.state)), target = this.number.get(Run.key(nextState)), taken = choice[s][this.memory];
      if (target === undefined) return;
      let y = atoms[this.memory], near = null;
      for (let o = choice_outcomes[taken]; o < choice_outcomes[taken + 1]; o++) {  // the outcome seen, or the nearest to it; of two the dearer
        const off = Math.abs(outcome_cost[o] - cost);
        if (outcome_target[o] === target && (near === null || off < near[0] || (off === near[0] && outcome_cost[o] > outcome_cost[near[1]]))) near = [off, o];
      }
      if (near) y *= xi[xi_offset[s][this.memory] + near[1] - choice_outcomes[taken]];
      this.memory = this.nearest(target, y);
    }
  }
  // A cost in units, rounded up; decimals are taken as they are written, so that 0.1 and 0.2 are 3 tenths.
  static units(cost, unit) {
    const [top, below] = String(unit).includes("/") ? unit.split("/") : [String(unit), "1"];
    const parts = text => { const [whole, after = ""] = text.split("."); return [BigInt(whole + after), 10n ** BigInt(after.length)]; };
    const plain = /e/.test(String(cost)) ? Number(cost).toFixed(20) : String(cost);
    const [a, b] = parts(plain), [c, d] = parts(top), [e, f] = parts(below);
    const over = a * d * e, under = b * c * f;
    return Number((over + under - 1n) / under);
  }
}
if (typeof module !== "undefined") module.exports = { Run };
