"use strict";
// Draws the resources out of the data of the page. Text is set as text and never parsed as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const table = document.getElementById("resources");
const body = table.tBodies[0];
const search = document.getElementById("search");
const shownCount = document.getElementById("shown");
const more = document.getElementById("more");
const STEP = 200;
let limit = STEP;
let order = { key: data.order, down: true };

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// What has no figure may cost anything, so it counts as the most.
function weight(row, key) {
  if (key === "name" || key === "location") return row[key];
  return row.rank[key] ?? Infinity;
}

function compare(one, other) {
  const a = weight(one, order.key), b = weight(other, order.key);
  const result = a < b ? -1 : a > b ? 1 : 0;
  return (order.down ? -result : result) || (one.name < other.name ? -1 : one.name > other.name ? 1 : 0);
}

function found() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  return data.rows.filter(row => words.every(word => row.text.includes(word))).sort(compare);
}

function partsOf(row) {
  const parts = element("table");
  for (const part of row.parts) {
    const line = parts.insertRow();
    line.append(element("td", part.name), element("td", part.quantity, "number"), element("td", part.unit),
      element("td", part.price, "number"), element("td", part.monthly, "number"), element("td", part.note, "soft"));
  }
  for (const note of row.notes) {
    const cell = parts.insertRow().insertCell();
    cell.colSpan = 6;
    cell.append(element("span", note, "soft"));
  }
  return parts;
}

function draw(row) {
  const line = element("tr");
  const first = element("td");
  const name = element("button", row.name, "name");
  name.type = "button";
  name.setAttribute("aria-expanded", "false");
  first.append(name, element("div", row.what, "soft"));
  line.append(first, element("td", row.location, "place"));
  for (const key of data.columns) line.append(element("td", row.shown[key], "number"));
  const bars = element("td", undefined, "bars");
  const bar = element("div", undefined, "bar");
  bar.style.width = `${row.share}%`;
  bar.title = row.shown[data.bar];
  if (Number(row.share) > 0) bars.append(bar);
  line.append(bars);
  name.addEventListener("click", () => {
    const open = name.getAttribute("aria-expanded") === "true";
    name.setAttribute("aria-expanded", String(!open));
    if (open) { line.nextElementSibling.remove(); return; }
    const below = element("tr", undefined, "parts");
    const cell = below.insertCell();
    cell.colSpan = line.cells.length;
    cell.append(partsOf(row));
    line.after(below);
  });
  return line;
}

function show() {
  const rows = found();
  body.replaceChildren(...rows.slice(0, limit).map(draw));
  shownCount.textContent = `${Math.min(limit, rows.length)} of ${data.rows.length} resources`;
  more.hidden = rows.length <= limit;
  for (const head of table.tHead.rows[0].cells) {
    const button = head.querySelector("button");
    if (!button) continue;
    if (button.dataset.key === order.key) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

for (const button of table.tHead.querySelectorAll("button")) {
  button.addEventListener("click", () => {
    const key = button.dataset.key;
    const text = key === "name" || key === "location";
    order = { key, down: order.key === key ? !order.down : !text };
    show();
  });
}
search.addEventListener("input", () => { limit = STEP; show(); });
more.addEventListener("click", () => { limit += STEP; show(); });
show();
