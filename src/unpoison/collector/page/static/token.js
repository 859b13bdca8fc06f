/** The operator's token: kept for this tab only, or handed over in the address (#token=…). */

const KEY = "unpoison-token";

export const token = () => sessionStorage.getItem(KEY) ?? "";

export function rememberToken(text) {
  sessionStorage.setItem(KEY, text.trim());
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

/** Take a secret out of the address's fragment and off the address bar; null if there is none. */
export function takeFromFragment(name) {
  const parts = new URLSearchParams(location.hash.slice(1));
  const secret = parts.get(name);
  if (secret === null) return null;
  parts.delete(name);
  const rest = parts.toString();
  history.replaceState(
    history.state,
    "",
    location.pathname + location.search + (rest && `#${rest}`),
  );
  return secret.trim();
}

/** Remember a token from the address; says whether there was one. */
export function takeToken() {
  const given = takeFromFragment("token");
  if (given) rememberToken(given);
  return Boolean(given);
}
