"use strict";
const form = document.querySelector("form"), output = form.querySelector("output"), search = form.querySelector("input");
const all = [...document.querySelectorAll("details")], sections = [...document.querySelectorAll("section")];
const text = new Map(all.map(e => [e, e.textContent.toLowerCase()]));
const shown = () => all.filter(e => !("hidden" in e.dataset));
const hide = (e, hidden) => { if (hidden) e.dataset.hidden = ""; else delete e.dataset.hidden; };
const filter = () => {
 const words = search.value.toLowerCase().split(" ").filter(w => w !== "");
 for (const e of all) hide(e, !words.every(w => text.get(e).includes(w)));
 for (const s of sections) hide(s, words.length > 0 && ![...s.querySelectorAll("details")].some(e => !("hidden" in e.dataset)) && !words.every(w => s.textContent.toLowerCase().includes(w)));
 output.textContent = words.length > 0 ? shown().length + " of " + all.length : "";
};
search.addEventListener("input", filter);
form.addEventListener("submit", e => e.preventDefault());
form.elements.expand.addEventListener("click", () => { for (const e of shown()) e.open = true; });
form.elements.collapse.addEventListener("click", () => { for (const e of shown()) e.open = false; });
form.elements.theme.addEventListener("click", () => {
 const root = document.documentElement.dataset, dark = matchMedia("(prefers-color-scheme: dark)").matches;
 root.theme = (root.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
});
form.hidden = false;
