/** The operator's token: kept for this tab only; it may come in the address (#token=…). */

const KEY = "unpoison-token";

export const token = () => sessionStorage.getItem(KEY) ?? "";

export function rememberToken(text) {
  sessionStorage.setItem(KEY, text.trim());
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

/**
 * Take a secret out of the address's fragment; null if there is none. It is removed from the
 * address bar, where others could see it, and from the browser's history.
 */
export function takeFromFragment(name) {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const secret = parameters.get(name);
  if (secret === null) return null;
  parameters.delete(name);
  const fragment = parameters.toString();
  history.replaceState(
    history.state,
    "",
    location.pathname + location.search + (fragment && `#${fragment}`),
  );
  return secret.trim();
}

/** Keep a token from the address; returns whether there was one. */
export function takeToken() {
  const fromAddress = takeFromFragment("token");
  if (fromAddress) rememberToken(fromAddress);
  return Boolean(fromAddress);
}
