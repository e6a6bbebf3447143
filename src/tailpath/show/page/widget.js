// The page in a frame of a notebook, its controls tied to the traits of the widget. The frame is a document of its own, so that neither
// its style nor its program meets those of the notebook; it has the notebook's origin, so that its controls can be reached.
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "what the policies of a model do";
  frame.style.cssText = `width:100%;height:${model.get("height")}px;border:0`;
  frame.srcdoc = model.get("html");
  frame.addEventListener("load", () => connect(model, frame.contentDocument, frame.contentWindow));
  el.append(frame);
}
function connect(model, page, window_) {
  const data = JSON.parse(page.getElementById("data").textContent), $ = id => page.getElementById(id);
  const read = {
    alpha: () => data.alphas[+$("alpha").value],
    policy: () => data.names[+page.querySelector("#policies input:checked").value],
    budget: () => +$("memory").value,
    run: () => +$("run").value || 0,
    step: () => +$("step").value || 0,
  };
  const tell = (element, kind) => element.dispatchEvent(new window_.Event(kind, { bubbles: true }));
  const move = (element, value, kind) => { if (+element.value !== value) { element.value = value; tell(element, kind); } };
  const nearest = alpha => data.alphas.reduce((best, each, k) => Math.abs(Math.log(each / alpha)) < Math.abs(Math.log(data.alphas[best] / alpha)) ? k : best, 0);
  const write = {
    alpha: value => move($("alpha"), nearest(value), "input"),
    policy: value => { const input = page.querySelectorAll("#policies input")[data.names.indexOf(value)]; if (input && !input.checked) { input.checked = true; tell(input, "change"); } },
    budget: value => move($("memory"), value, "input"),
    run: value => move($("run"), value, "change"),
    step: value => move($("step"), value, "input"),
  };
  const pull = () => {
    for (const [name, now] of Object.entries(read)) if (model.get(name) !== now()) model.set(name, now());
    model.save_changes();
  };
  for (const [name, set] of Object.entries(write)) model.on(`change:${name}`, () => { set(model.get(name)); pull(); });
  if (model.get("alpha") !== null) write.alpha(model.get("alpha"));
  if (model.get("policy")) write.policy(model.get("policy"));
  // A step of a run that plays changes its words, and every control says so itself.
  new window_.MutationObserver(pull).observe($("step-words"), { childList: true, characterData: true, subtree: true });
  for (const kind of ["input", "change"]) page.addEventListener(kind, pull);
  pull();
}
export default { render };
