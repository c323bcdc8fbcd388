// Waits for locks, and for other processes, on the timeline: a bar in the row of the
// call that waits, and a line from its begin to the call of the thread that held the
// lock then, or that was late.

const BAR = 5;                  // height of a wait's bar
const FLOW_LEAST = 4;           // pixels; shorter waits have no line
const FLOWS_MOST = 300;         // lines in a picture

const IN_VAIN = 1, STILL = 2;

// The lane of the thread with a number of the trace; null: it is not shown.
function laneOfThread(lanes, thread) {
    return lanes.find(lane => lane.thread === thread && !lane.track) || null;
}

// The lane on which task @tid had calls at @time; NONE: it is not in the trace.
function laneOfTask(lanes, { process }, tid, time) {
    let found = -1;

    lanes.forEach((lane, i) => {
        if (lane.tid === tid && lane.process === process && !lane.track &&
            lane.begin_ns <= time)
            found = i;
    });
    return found < 0 ? null : lanes[found];
}

// @waits of all threads, as written by html.c.
function addWaits(lanes, waits) {
    const byLane = new Map(lanes.map(lane =>
        [`${lane.thread} ${lane.track}`, lane]));

    for (const lane of lanes)
        lane.waits = [];
    for (const [thread, track, depth, to, took, kind, lock, tid, how, late] of
        waits) {
        const lane = byLane.get(`${thread} ${track}`);

        if (!lane)
            continue;
        const from = to - took;

        lane.waits.push({ from, to, depth, kind, tid, how,
            lock: lock === null ? null : visible(lock),
            holder: late !== undefined ? laneOfThread(lanes, late) :
                tid ? laneOfTask(lanes, lane, tid, from) : null });
    }
    for (const lane of lanes)
        lane.waits.sort((a, b) => a.from - b.from);
}

// The innermost call of lane number @lane at @time, as a place on the timeline; null:
// there is none.
function innermostAt(picture, lane, time) {
    let depth = -1, piece = -1;

    for (const row of picture.lanes[lane].rows) {
        const next = row.at(time);

        if (next < 0)
            break;
        piece = next;
        depth++;
    }
    return depth < 0 ? null : { lane, depth, piece };
}

// The innermost call of the holder when @wait began; null: it is unknown or not shown.
function holderOf(picture, wait) {
    const lane = picture.lanes.indexOf(wait.holder);

    return lane < 0 ? null : innermostAt(picture, lane, wait.from);
}

// The waits of a call itself, without those of the calls in it.
function waitsOf(lane, at) {
    const row = lane.rows[at.depth];
    const begin = row.begin[at.piece], end = row.end[at.piece];
    const found = [];

    for (let i = firstAfter(lane.waits, begin); i < lane.waits.length &&
        lane.waits[i].from < end; i++)
        if (lane.waits[i].depth === at.depth + 1 ||
            (!row.what[at.piece] && lane.waits[i].depth > at.depth))
            found.push(lane.waits[i]);
    return found;
}

function waitText(wait) {
    const { tid, holder } = wait;

    if (wait.lock === null)
        return `${humanNs(wait.to - wait.from)} for ${visible(wait.kind)}`;
    return `${humanNs(wait.to - wait.from)} ${['', 'in vain ',
        'until the end '][wait.how]}for ${wait.kind} ${wait.lock}${tid ?
        `, held by ${holder ? threadName(holder) : `thread ${tid}`}` : ''}`;
}

// Adds the waits of a call to its facts.
function addWaitFacts(list, waits) {
    const longest = [...waits].sort((a, b) => b.to - b.from - a.to + a.from);

    for (const wait of longest.slice(0, 4))
        fact(list, 'Waited', waitText(wait), exactNs(wait.to - wait.from));
    if (longest.length > 4)
        fact(list, 'And', `${humanCount(longest.length - 4)} shorter waits`);
}

function waitsNote() {
    const { waits, waits_left_out: left } = times;
    const ranks = waits.some(wait => wait.length > 9);
    const locks = waits.some(wait => wait.length === 9);

    return waits.length ? ` ${humanCount(waits.length)} waits for ${
        [locks && 'locks', ranks && 'late ranks'].filter(Boolean)
            .join(' and ')}` +
        `${left ? ` (and ${humanCount(left)} shorter ones, not shown)` : ''}: ` +
        'a bar in the call that waits; the line leads from its begin to the ' +
        `call of the thread that ${locks ? 'held the lock then' : 'was late'
        } (h).` : '';
}

// --- drawing ---

// The top of the bar of @wait on @lane.
function barTop(drawing, lane, wait) {
    const about = drawing.picture.lanes[lane];
    const height = drawing.rowHeight(about);

    return wait.depth ? drawing.rowTop(lane, Math.min(wait.depth,
        about.rows.length) - 1) + Math.max(height - 1 - BAR, 0) :
        drawing.laneTop(lane) + HEAD - BAR;
}

// Draws the bars of @lane's waits; of those within a pixel, one.
function drawBars(drawing, lane, flows) {
    const { picture, range, width, raster } = drawing;
    const { waits } = picture.lanes[lane];
    const next = [];

    for (let i = firstAfter(waits, range[0]); i < waits.length &&
        waits[i].from < range[1]; i++) {
        const wait = waits[i];
        const left = Math.max(drawing.x(wait.from), next[wait.depth] || 0);
        const right = Math.min(Math.max(drawing.x(wait.to), left + 1), width);

        if (right <= (next[wait.depth] || 0))
            continue;
        next[wait.depth] = Math.max(right, Math.floor(left) + 1);
        const y = barTop(drawing, lane, wait);

        if (y + BAR <= AXIS || y >= drawing.shown)
            continue;
        drawing.hasWaits = true;
        raster.rect(left, y, right - left, Math.min(BAR,
            drawing.rowHeight(picture.lanes[lane])), picture.wait);
        if (right - left >= FLOW_LEAST && drawing.x(wait.from) >= 0 &&
            flows.length < FLOWS_MOST)
            flows.push({ wait, lane });
    }
}

// Draws a line from the begin of a wait to the call of the holder, with a square
// at its end.
function drawFlow(drawing, { wait, lane }) {
    const { context, picture } = drawing;
    const holder = holderOf(picture, wait);
    const x = drawing.x(wait.from);

    if (!holder || x < 0 || x > drawing.width)
        return;
    const { rows } = picture.lanes[holder.lane];
    const from = barTop(drawing, lane, wait) + BAR / 2;
    const to = drawing.rowTop(holder.lane, Math.min(holder.depth,
        rows.length - 1)) + drawing.rowHeight(picture.lanes[holder.lane]) / 2;
    const top = Math.max(Math.min(from, to), AXIS);
    const bottom = Math.min(Math.max(from, to), drawing.shown);

    context.fillStyle = picture.wait;
    context.fillRect(x, top, 1.5, Math.max(bottom - top, 0));
    if (to > AXIS && to < drawing.shown)
        context.fillRect(x - 2.5, to - 3, 6, 6);
}

// The wait whose bar is at a point, or null.
function findWait(drawing, x, y) {
    const lane = y < AXIS || drawing.headAt(y) >= 0 ? -1 : drawing.laneAt(y);

    if (lane < 0)
        return null;
    const { waits } = drawing.picture.lanes[lane];

    for (let i = firstAfter(waits, drawing.time(x - 1)); i < waits.length &&
        drawing.x(waits[i].from) <= x + 1; i++) {
        const top = barTop(drawing, lane, waits[i]);

        if (y >= top - 1 && y <= top + BAR)
            return waits[i];
    }
    return null;
}

// --- to the holder ---

// The longest wait of the focused call whose holder is known, or null.
function waitToFollow() {
    const { focused, picture } = timeline;

    return focused && waitsOf(picture.lanes[focused.lane], focused)
        .filter(wait => holderOf(picture, wait))
        .sort((a, b) => b.to - b.from - a.to + a.from)[0] || null;
}

function goToHolder(wait = waitToFollow()) {
    const at = wait && holderOf(timeline.picture, wait);

    if (at)
        timeline.go(at);
}
