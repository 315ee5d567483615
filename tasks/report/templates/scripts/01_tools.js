// Elements and texts. Every text is set as text, so that no name and no source becomes markup.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);
const words = (name) => String(name).replaceAll("_", " ");
const count = (number) => number.toLocaleString("en-US");
const share = (value) => `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;

function speed(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  return value < 100 ? `${value.toFixed(2)}x` : `${value.toFixed(0)}x`;
}

function interval(low, high) {
  return low === null || low === undefined ? "-" : `${low.toFixed(2)} to ${high.toFixed(2)}`;
}

// What a script element of the page holds: compressed, in base64.
async function unpacked(id) {
  const letters = atob(byId(id).textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  writer.write(bytes);
  writer.close();
  const reader = stream.readable.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}

// The last of a burst of calls, a moment after it.
function settled(call, delay_ms) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, delay_ms);
  };
}

// A table whose first `labels` columns are words, the others numbers.
function plainTable(caption, header, rows, labels) {
  const kind = (index) => (index >= labels ? "number" : null);
  const head = header.map((name, index) => element("th", { scope: "col", class: kind(index) }, name));
  const body = rows.map((cells) =>
    element(
      "tr",
      {},
      ...cells.map((cell, index) =>
        index ? element("td", { class: kind(index) }, cell) : element("th", { scope: "row" }, cell),
      ),
    ),
  );
  return element(
    "div",
    { class: "wide", role: "region", "aria-label": caption, tabindex: "0" },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...body),
    ),
  );
}
