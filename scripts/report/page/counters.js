// Counters of the program and of the system, as curves in time.

// Values that only grow are sums of what happened, except sizes.
const SIZES = /\b(resident|proportional|anonymous|swapped|heap|in use|size)\b/i;

// The unit is in the name: what stands in parentheses at its end, or bytes or ns.
function unitOf(name) {
    const [, unit] = name.match(/[([]([^)\]]+)[)\]]\s*$/) ||
        name.match(/\b(bytes|ns)\b/) || [];

    return unit || '';
}

function plainNumber(value) {
    const units = [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e4, ' k', 1e3]];
    const [least, unit, size] = units.find(each =>
        Math.abs(value) >= each[0]) || [1, ''];

    return `${Number((value / (size || least)).toPrecision(4))}${unit}`;
}

// @value with its unit; @perSecond: it is a rate.
function valueText(value, unit, perSecond) {
    const end = perSecond ? '/s' : '';
    const minus = value < 0 ? '\u2212' : '';

    if (unit === 'bytes')
        return `${minus}${humanBytes(Math.abs(value))}${end}`;
    if (unit === 'ns' && perSecond)
        return `${plainNumber(value / 1e9)} s${end}`;
    if (unit === 'ns')
        return `${minus}${humanNs(Math.abs(value))}`;
    return `${plainNumber(value)}${unit ? ` ${unit}` : ''}${end}`;
}

// One curve: it has a value from one point until the next.
class Counter {
    constructor(name, points) {
        this.name = name;
        this.unit = unitOf(name);
        this.points = points;
        this.isConstant = points.every(({ value }) =>
            value === points[0].value);
        this.isSum = points.length > 2 && !this.isConstant &&
            !SIZES.test(name) && points.every(({ value }, i) =>
            i === 0 || value >= points[i - 1].value);
        this.show(true);
    }

    // @rates: what is a sum is shown as its rate.
    show(rates) {
        this.isRate = rates && this.isSum;
        this.shown = this.isRate ? this.rates() : this.points;
        this.least = this.shown.reduce((a, { value }) => Math.min(a, value), 0);
        this.most = this.shown.reduce((a, { value }) => Math.max(a, value), 0);
    }

    // The growth until the next point, by second.
    rates() {
        const rates = [];
        let last = this.points[0];

        for (const point of this.points) {
            if (point.ns <= last.ns)
                continue;
            rates.push({ ns: last.ns, value: (point.value - last.value) /
                (point.ns - last.ns) * 1e9 });
            last = point;
        }
        return [...rates, { ns: last.ns, value: 0 }];
    }

    get title() {
        return `${this.name}${this.isRate ? ', per second' : ''}`;
    }

    text(value) {
        return valueText(value, this.unit, this.isRate);
    }

    // The last point at or before @ns; -1: none.
    at(ns) {
        let least = 0, most = this.shown.length;

        while (least < most) {
            const middle = (least + most) >> 1;

            if (this.shown[middle].ns > ns)
                most = middle;
            else
                least = middle + 1;
        }
        return least - 1;
    }
}

function countersOf(marks) {
    const points = new Map();

    for (const { kind, ns, value, text } of marks) {
        if (kind !== 'counter' || value === null)
            continue;
        if (!points.has(text))
            points.set(text, []);
        points.get(text).push({ ns, value });
    }
    return [...points].map(([name, own]) => new Counter(name, own));
}
