/** Colours of the style sheet for canvases, in the light and the dark theme. */

const dark = matchMedia("(prefers-color-scheme: dark)");

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function onThemeChange(redraw) {
  dark.addEventListener("change", redraw);
}

/** A pattern of diagonal lines, so that poison can be recognised without colour. */
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
