/**
 * Privacy Pass tokens (RFC 9577, RFC 9578 type 2) with blind RSA signatures (RFC 9474), for client.js.
 *
 * client.js imports this file only for campaigns by token. The issuer signs a number that says
 * nothing about the token; the blinding is removed here, and the signature verified before use.
 */

const TOKEN_TYPE = [0, 2];
const KEY_BYTES = 256;
const EXPONENT = 65537n;
const HASH_BYTES = 48;
const SALT_BYTES = 48;
const NONCE_BYTES = 32;
// The last byte of an encoded message (RFC 8017).
const TRAILER = 0xbc;
// DER of a key for RSASSA-PSS with SHA-384, of 2048 bits: all of it but the modulus is fixed.
const KEY_PREFIX = bytesOfHex(
  "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202" +
  "a11a301806092a864886f70d010108300b0609608648016503040202a20302013003" +
  "82010f003082010a0282010100",
);
const KEY_SUFFIX = bytesOfHex("0203010001");
const CONTEXT = "unpoison campaign ";
const DIRECTORY = "/.well-known/private-token-issuer-directory";

/** Why there is no token; `code` is the issuer's, or one of client.js. */
export class TokenError extends Error {
  name = "TokenError";

  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function hold(holds, message, code = "token-refused") {
  if (!holds) throw new TokenError(code, message);
}

// Bytes, numbers and texts.

function bytesOfHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const numberOf = (bytes) => BigInt(`0x${hexOf(bytes)}`);
const bytesOf = (number, length) => bytesOfHex(number.toString(16).padStart(2 * length, "0"));
const asText = (bytes) => String.fromCharCode(...bytes);
const randomBytes = (length) => crypto.getRandomValues(new Uint8Array(length));
const equal = (one, other) => hexOf(one) === hexOf(other);

function joined(...parts) {
  return Uint8Array.from(parts.flatMap((part) => Array.from(part)));
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function fromBase64Url(text) {
  hold(typeof text === "string" && /^[\w-]+={0,2}$/.test(text), "a key or challenge is malformed");
  try {
    return fromBase64(text.replace(/=+$/, "").replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    throw new TokenError("token-refused", "a key or challenge is malformed");
  }
}

const toBase64Url = (bytes) => btoa(asText(bytes)).replaceAll("+", "-").replaceAll("/", "_");

async function digest(name, ...parts) {
  hold(crypto.subtle, "tokens need a page that was loaded by https", "invalid-request");
  return new Uint8Array(await crypto.subtle.digest(name, joined(...parts)));
}

// Arithmetic modulo a key.

function power(base, exponent, modulus) {
  let result = 1n;
  for (let square = base % modulus; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The inverse by Euclid's algorithm; null if there is none. */
function inverse(number, modulus) {
  let [rest, next, factor, nextFactor] = [number % modulus, modulus, 1n, 0n];
  while (next > 0n) {
    const quotient = rest / next;
    [rest, next] = [next, rest - quotient * next];
    [factor, nextFactor] = [nextFactor, factor - quotient * nextFactor];
  }
  return rest === 1n ? ((factor % modulus) + modulus) % modulus : null;
}

/** A random number below the modulus that has an inverse. */
function newFactor(modulus) {
  for (;;) {
    const factor = numberOf(randomBytes(KEY_BYTES));
    if (factor < modulus && factor > 0n && inverse(factor, modulus) !== null) return factor;
  }
}

async function maskOf(seed, length) {
  const blocks = [];
  for (let count = 0; count * HASH_BYTES < length; count += 1) {
    blocks.push(await digest("SHA-384", seed, bytesOf(BigInt(count), 4)));
  }
  return joined(...blocks).slice(0, length);
}

/** EMSA-PSS-ENCODE of RFC 8017 for a key of 2048 bits. */
async function encoded(message, salt) {
  const hash = await digest("SHA-384", new Uint8Array(8), await digest("SHA-384", message), salt);
  const padding = new Uint8Array(KEY_BYTES - SALT_BYTES - HASH_BYTES - 2);
  const block = joined(padding, [1], salt);
  const mask = await maskOf(hash, block.length);
  const masked = block.map((byte, place) => byte ^ mask[place]);
  // The number must stay below the modulus, which has 2048 bits.
  masked[0] &= 0x7f;
  return joined(masked, hash, [TRAILER]);
}

function modulusOf(der) {
  const modulus = der.slice(KEY_PREFIX.length, der.length - KEY_SUFFIX.length);
  const whole = equal(der, joined(KEY_PREFIX, modulus, KEY_SUFFIX));
  const large = modulus.length === KEY_BYTES && modulus[0] > 127 && modulus[KEY_BYTES - 1] % 2 === 1;
  hold(whole && large, "the issuer's key is malformed");
  return numberOf(modulus);
}

async function verify(der, message, signature) {
  const [n, e] = [der.slice(KEY_PREFIX.length, -KEY_SUFFIX.length), [1, 0, 1]];
  const bare = (bytes) => toBase64Url(bytes).replace(/=+$/, "");
  // As JWK: not all browsers read the encoding that RFC 9578 asks for.
  const jwk = { kty: "RSA", n: bare(n), e: bare(Uint8Array.from(e)) };
  const algorithm = { name: "RSA-PSS", hash: "SHA-384" };
  const key = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["verify"]);
  return crypto.subtle.verify({ name: "RSA-PSS", saltLength: SALT_BYTES }, key, signature, message);
}

// What a campaign says of its tokens.

function field(bytes, start, size) {
  const length = bytes.slice(start, start + size).reduce((total, byte) => 256 * total + byte, 0);
  const end = start + size + length;
  hold(end <= bytes.length, "the campaign's challenge is malformed");
  return [bytes.slice(start + size, end), end];
}

function decodeChallenge(bytes) {
  hold(equal(bytes.slice(0, 2), TOKEN_TYPE), "the campaign's tokens are of another type");
  const [issuer, afterIssuer] = field(bytes, 2, 2);
  const [context, afterContext] = field(bytes, afterIssuer, 1);
  const [origins, end] = field(bytes, afterContext, 2);
  hold(end === bytes.length, "the campaign's challenge is malformed");
  const names = origins.length ? asText(origins).split(",") : [];
  return { issuer: asText(issuer), context, origins: names };
}

/** The terms of a campaign's tokens, if they are for this campaign at this collector. */
export async function checkedTerms({ id, token_challenge: text, token_key: key }, collector) {
  const challenge = fromBase64Url(text);
  const { issuer, context, origins } = decodeChallenge(challenge);
  const expected = await digest("SHA-256", new TextEncoder().encode(CONTEXT + id));
  hold(equal(context, expected), "the challenge is not for this campaign");
  // A collector that passes on another one's challenge would spend the token there.
  const here = origins.length === 0 || origins.includes(new URL(collector).host);
  hold(here, "the challenge is not for this collector");
  const der = fromBase64Url(key);
  modulusOf(der);
  return { issuer, key: hexOf(der), challengeDigest: hexOf(await digest("SHA-256", challenge)) };
}

/** Whether a pending token is for these terms. */
export const isOfTerms = (pending, { key, challengeDigest }) =>
  pending.key === key && pending.challengeDigest === challengeDigest;

// Issuance.

/** What is kept until the issuer has answered; the same pending token makes the same request. */
export function newPending({ key, challengeDigest }) {
  const factor = newFactor(modulusOf(bytesOfHex(key)));
  const [nonce, salt] = [hexOf(randomBytes(NONCE_BYTES)), hexOf(randomBytes(SALT_BYTES))];
  return { key, challengeDigest, nonce, salt, factor: factor.toString(16) };
}

async function opened({ key, challengeDigest, nonce, salt, factor }) {
  const der = bytesOfHex(key);
  const keyId = await digest("SHA-256", der);
  const parts = [bytesOfHex(nonce), bytesOfHex(challengeDigest), keyId];
  const message = joined(TOKEN_TYPE, ...parts);
  const [modulus, blinding] = [modulusOf(der), BigInt(`0x${factor}`)];
  return { der, keyId, message, modulus, factor: blinding, salt: bytesOfHex(salt) };
}

/** The TokenRequest of RFC 9578: type, the last byte of the key's id, the blinded message. */
export async function requestOf(pending) {
  const { keyId, message, modulus, factor, salt } = await opened(pending);
  const number = numberOf(await encoded(message, salt));
  const blinded = (number * power(factor, EXPONENT, modulus)) % modulus;
  return joined(TOKEN_TYPE, keyId.slice(-1), bytesOf(blinded, KEY_BYTES));
}

/** The token in base64url, from the issuer's response. */
export async function finalise(pending, response) {
  const { der, message, modulus, factor } = await opened(pending);
  hold(response.length === KEY_BYTES, "the issuer's signature is not valid");
  const number = (numberOf(response) * inverse(factor, modulus)) % modulus;
  const signature = bytesOf(number, KEY_BYTES);
  hold(await verify(der, message, signature), "the issuer's signature is not valid");
  return toBase64Url(joined(message, signature));
}

// The issuer's HTTP interface.

function issuerAddress(url) {
  hold(URL.canParse(url), "issuer.url must be a web address", "invalid-request");
  const { protocol, hostname, origin, host } = new URL(url);
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  const safe = protocol === "https:" || (protocol === "http:" && local);
  hold(safe, "issuer.url must begin with https://", "invalid-request");
  return { origin, host };
}

function pinnedKey(pem) {
  const body = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/.exec(pem);
  hold(body, "issuer.key must be a public key in PEM", "invalid-request");
  return hexOf(fromBase64(body[1].replace(/\s/g, "")));
}

function objectOf(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

function refusal({ status, bytes }) {
  const named = objectOf(bytes).error?.code;
  const code = /^[a-z-]{1,40}$/.test(named) ? named : "issuer-refused";
  return new TokenError(code, `the issuer refused with ${code} (status ${status})`);
}

/**
 * The address for requests, from the issuer's directory, which must list the campaign's key. The
 * directory is asked without the account: it must be the same for all.
 */
export async function requestAddress({ url, key: pem }, { issuer, key }, exchange) {
  const { origin, host } = issuerAddress(url);
  hold(issuer === host, "the campaign's tokens are of another issuer");
  hold(pem === undefined || pinnedKey(pem) === key, "the campaign's tokens are of another key");
  const answer = await exchange(origin + DIRECTORY, {});
  if (answer.status !== 200) throw refusal(answer);
  const { "issuer-request-uri": uri, "token-keys": keys } = objectOf(answer.bytes);
  const entries = Array.isArray(keys) ? keys : [];
  const listed = entries.some((entry) =>
    entry?.["token-type"] === 2 && hexOf(fromBase64Url(entry["token-key"])) === key);
  hold(listed, "the campaign's key is not in the issuer's directory");
  const own = typeof uri === "string" && URL.canParse(uri, origin);
  const address = own ? new URL(uri, origin) : {};
  hold(address.origin === origin, "the issuer's directory sends requests elsewhere");
  return address.href;
}

/** The token that a pending one becomes, signed by the issuer for an account. */
export async function signedToken(pending, address, account, exchange) {
  const plain = typeof account === "string" && /^[!-~]{1,4096}$/.test(account);
  hold(plain, "issuer.account must be the token of an account", "invalid-request");
  const headers = {
    Accept: "application/private-token-response",
    Authorization: `Bearer ${account}`,
    "Content-Type": "application/private-token-request",
  };
  const body = await requestOf(pending);
  const answer = await exchange(address, { method: "POST", headers, body });
  if (answer.status !== 200) throw refusal(answer);
  return finalise(pending, answer.bytes);
}
