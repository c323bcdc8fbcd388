// Formats numbers and names as the report does.

// toFixed() rounds a tie up, printf() rounds it to even.
function fixed(value, digits) {
    const whole = value.toFixed(digits + 30);
    const kept = whole.slice(0, -30);

    return /50{29}$/.test(whole) && /[02468]\.?$/.test(kept) ?
        kept.replace(/\.$/, '') : value.toFixed(digits);
}

function humanNs(ns) {
    const units = ['ns', 'us', 'ms', 's'];
    let unit = 0;

    if (!(ns > 0))
        return '0 ns';
    for (; unit < 3 && ns >= 999.5; unit++)
        ns /= 1000;
    if (unit === 3 && ns >= 1e7)
        return `${ns.toExponential(1)} s`;
    return `${fixed(ns, ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2)} ${units[unit]}`;
}

function humanBytes(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let unit = 0;

    for (; bytes >= 1023.95 && unit < 5; unit++)
        bytes /= 1024;
    return `${fixed(bytes, unit ? 1 : 0)} ${units[unit]}`;
}

function humanCount(count) {
    return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

// A time, or its upper bound where it cannot be distinguished from 0.
function boundedNs(ns, below = 0) {
    return below > 0 ? `< ${humanNs(below)}` : humanNs(ns);
}

// The text of a count of calls: exact, an estimate, a lower bound, or nothing
// if calls are not counted.
const CERTAINTY = [humanCount, count => `~${humanCount(count)}`,
    count => `> ${humanCount(count)}`, () => '-'];

function callsText(count, certainty = 0) {
    return CERTAINTY[certainty](count);
}

// The same with half of the estimate's 95 % interval.
function callsExactly(calls, certainty, error) {
    return callsText(calls, certainty) + (certainty === 1 && error ?
        ` \u00b1 ${humanCount(error)}` : '');
}

// The certainty of a sum: a part that is not counted adds nothing.
function lessCertain(a = 3, b = 0) {
    return a === 3 || b === 3 ? Math.min(a, b) : Math.max(a, b);
}

// @ns with enough digits to distinguish steps of @step.
function timeText(ns, step) {
    const units = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]];
    const [unit, size] = units.find(each => Math.max(ns, step) >= each[1]) ||
        units[3];

    return `${(ns / size).toFixed(Math.max(0,
        Math.ceil(Math.log10(size / step) - 1e-9)))} ${unit}`;
}

const human = { ns: humanNs, bytes: humanBytes, count: humanCount };

// Percent of @all, or a dash if @all is 0.
function percent(part, all) {
    return all > 0 ? `${fixed(100 * part / all, 2)} %` : '-';
}

// Text from outside may hold anything: characters that move a cursor or change
// the direction of reading are shown by number.
const INVISIBLE = new RegExp('[\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e' +
    '\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]', 'g');

function visible(text) {
    return text.replace(INVISIBLE, c => {
        const code = c.charCodeAt(0);

        return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` :
            `\\u${code.toString(16).padStart(4, '0')}`;
    });
}

// @text, cut after @most characters.
function shorten(text, most) {
    return text.length <= most ? text : `${text.slice(0, most - 1)}\u2026`;
}

// The report's short forms of C++ names, by full name.
const shortNames = new Map();

function noteShortName(name, brief) {
    if (brief)
        shortNames.set(visible(name), visible(brief));
}

function shortName(name) {
    return shortNames.get(name) || name;
}

// The forms of @name to try when space is short: whole, short, without the
// inner scopes, the last part alone.
function* lessAndLess(name) {
    const brief = shortName(name);

    yield name;
    yield brief;
    const ends = brief.search(/operator\s|\[|$/);
    const parts = brief.slice(0, ends).split('::');
    const last = parts.pop() + brief.slice(ends);

    if (!shortNames.has(name) || !parts.length)
        return;
    for (let left = 2; left < parts.length + 1; left++)
        yield [parts[0], '...', ...parts.slice(left), last].join('::');
    yield `...::${last}`;
    yield last;
}

function baseName(path) {
    return path.slice(path.lastIndexOf('/') + 1) || path;
}

// An element with text in it; text from outside is never parsed as HTML.
function element(name, text = '', attributes = {}) {
    const made = document.createElement(name);

    made.textContent = text;
    for (const [key, value] of Object.entries(attributes))
        made.setAttribute(key, value);
    return made;
}
