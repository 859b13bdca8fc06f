/** The colours of the style sheet, for canvases; they change with light and dark. */

const dark = matchMedia("(prefers-color-scheme: dark)");

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function onThemeChange(redraw) {
  dark.addEventListener("change", redraw);
}

/** Diagonal lines, so that poison can be told from the rest without colour. */
export function hatched(context, stroke) {
  const ratio = devicePixelRatio || 1;
  const size = Math.round(6 * ratio);
  const tile = Object.assign(document.createElement("canvas"), { width: size, height: size });
  const pen = tile.getContext("2d");
  pen.strokeStyle = stroke;
  pen.lineWidth = 1.4 * ratio;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
