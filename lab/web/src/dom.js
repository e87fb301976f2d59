// Elements, and the parts that every section is made of.

/** An element: `el("p", { class: "about" }, "text", child)`. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

/** A section with a heading that can be linked to. */
export function section(id, title, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

/** A table that scrolls in itself when it is wider than the page. Rows are arrays of texts or elements. */
export function table(caption, header, rows, { numeric = true } = {}) {
  const cell = (content, column) =>
    column === 0
      ? el("th", { scope: "row" }, content)
      : el("td", { class: numeric ? "number" : null }, content);
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, header.map((text, column) => el("th", { scope: "col", class: numeric && column > 0 ? "number" : null }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell)))),
    ),
  );
}

/** Something that is built when it is first opened. */
export function disclosure(title, build, { open = false } = {}) {
  const details = el("details", { open }, el("summary", {}, title));
  let built = false;
  const fill = () => {
    if (!details.open || built) return;
    built = true;
    details.append(...[build()].flat());
  };
  details.addEventListener("toggle", fill);
  fill();
  return details;
}

/** A figure whose drawing follows the width it is given. */
export function chart(title, draw) {
  const frame = el("div", { class: "frame" });
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now === width || now === 0) return;
    width = now;
    const drawing = draw(width);
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", title);
    frame.replaceChildren(drawing);
  }).observe(frame);
  return el("figure", { class: "chart" }, el("figcaption", {}, title), frame);
}
