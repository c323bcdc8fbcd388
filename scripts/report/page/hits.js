// Leads through what the search found: calls on the timeline in the order of
// time, and call paths from left to right.

// Whether hit @a comes before @b.
function isBefore(a, b) {
    return a.ns - b.ns || a.lane - b.lane || a.depth - b.depth;
}

// The hit of @lanes that is next to @at, forwards or backwards; null: none.
// @marks: by function of the timeline.
function nextCall(lanes, marks, at, step) {
    let best = null;

    lanes.forEach(({ rows }, lane) => rows.forEach((row, depth) => {
        const here = piece => ({ ns: row.begin[piece], lane, depth, piece });
        let piece = row.after(at.ns, 0);

        while (piece > 0 && step > 0 && row.begin[piece - 1] >= at.ns)
            piece--;
        if (step < 0)
            piece = Math.min(piece + 1, row.count - 1);
        for (; piece >= 0 && piece < row.count; piece += step)
            if (row.what[piece] && marks[row.number(piece)] &&
                isBefore(here(piece), at) * step > 0) {
                if (!best || isBefore(here(piece), best) * step < 0)
                    best = here(piece);
                return;
            }
    }));
    return best;
}

// The number of hits up to @at, and of all.
function countCalls(lanes, marks, at) {
    let before = 0, all = 0;

    lanes.forEach(({ rows }, lane) => rows.forEach((row, depth) => {
        for (let piece = 0; piece < row.count; piece++)
            if (row.what[piece] && marks[row.number(piece)]) {
                all++;
                if (isBefore({ ns: row.begin[piece], lane, depth }, at) <= 0)
                    before++;
            }
    }));
    return { before, all };
}

function jumpOnTimeline(step) {
    const { picture, focused, range } = timeline;
    const { lanes, marks } = picture;
    const at = focused ? { ns: timeline.timesOf(focused)[0], ...focused } :
        { ns: step > 0 ? range[0] : range[1], lane: -step * Infinity,
            depth: 0 };
    const hit = marks && (nextCall(lanes, marks, at, step) ||
        nextCall(lanes, marks, { ns: -step * Infinity, lane: 0, depth: 0 },
            step));

    if (!hit) {
        byId('hit-call').textContent = marks ? 'no hit' : 'search first';
        return;
    }
    timeline.go({ lane: hit.lane, depth: hit.depth, piece: hit.piece });
    const { before, all } = countCalls(lanes, marks, hit);

    byId('hit-call').textContent = `hit ${humanCount(before)} of ${
        humanCount(all)}`;
}

// The paths that were found, from left to right.
function pathHits() {
    const { picture, marks } = flame;
    const { view: tree, from, to } = picture;
    const found = [];

    for (let i = 1; marks && i < tree.count; i++)
        if (marks[tree.function[i]] && to[i] > from[i])
            found.push(i);
    return found.sort((a, b) => from[a] - from[b] || a - b);
}

function jumpInPaths(step) {
    const found = pathHits();
    const at = found.indexOf(flame.focused);
    const next = at >= 0 ? at + step : step > 0 ? 0 : found.length - 1;
    const hit = (next + found.length) % found.length;

    byId('hit').textContent = found.length ? `hit ${humanCount(hit + 1)} of ${
        humanCount(found.length)}` : flame.marks ? 'no hit' : 'search first';
    if (found.length)
        flame.go(found[hit]);
}

// The drawing that is in use decides.
function jump(step) {
    if (timeline && [byId('timeline'), byId('overview')].includes(
        document.activeElement))
        jumpOnTimeline(step);
    else
        jumpInPaths(step);
}
