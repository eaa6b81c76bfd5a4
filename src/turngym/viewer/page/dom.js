// Makes elements. Text only ever enters as text nodes, so that nothing an episode says is read as HTML.

const byId = (id) => document.getElementById(id);

/** An element with properties (`class`, `text`, `on...`, attributes) and children; empty children are left out. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const whole = (count) => count.toLocaleString("en");
const counted = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

/** A number in at most `digits` decimals, without noughts at its end. */
function short(value, digits = 3) {
  const number = Number(value);
  if (!Number.isFinite(number)) return String(number);
  const text = number.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return (text === "-0" ? "0" : text).replace("-", "−");
}

const signed = (value) => (Number(value) > 0 ? `+${short(value)}` : short(value));

function duration(seconds) {
  const value = Number(seconds);
  if (value >= 1) return `${short(value, 2)} s`;
  const milliseconds = value * 1000;
  return `${short(milliseconds, milliseconds >= 10 ? 0 : milliseconds >= 1 ? 1 : 2)} ms`;
}

const LONG_TEXT = 20000;

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

/** A text with the signs that show nothing, or turn others around, spelled out. */
function seen(text) {
  const spelled = (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return text.replaceAll("\r\n", "\n").replace(UNSEEN, spelled);
}

/** A block of foreign text; past LONG_TEXT characters the rest comes when asked for. */
function textBlock(text, kind) {
  const block = make("pre", { class: kind, dir: "auto" });
  if (text === "") block.append(make("span", { class: "void", text: "(empty)" }));
  else if (text.length <= LONG_TEXT) block.textContent = seen(text);
  else {
    block.textContent = seen(text.slice(0, LONG_TEXT));
    const left = text.length - LONG_TEXT;
    const more = make("button", { type: "button", class: "quiet", text: `… show ${counted(left, "more character")}` });
    more.addEventListener("click", () => (block.textContent = seen(text)));
    block.append(more);
  }
  return block;
}

/** Calls a function once the calls for it have stopped for a while. */
function settled(call, wait_ms) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, wait_ms);
  };
}
