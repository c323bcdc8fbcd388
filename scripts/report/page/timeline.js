// Lanes of calls in time: a lane for each thread (and coroutine), a row for
// each depth.  Of pieces narrower than a pixel, only one per pixel is visited,
// found by binary search, so drawing is equally quick with millions of calls.

const AXIS = 24;                // height of the time axis
const HEAD = 24;                // height of a lane's name
const BELOW = 10;               // space between lanes
const CURVE = 40;               // height of a counter
const LEAST_NS = 20;            // shortest visible range

class Timeline extends Drawing {
    // @on: { point(piece, event), focus(piece), zoom() }; a piece is { lane,
    // depth, piece }, or null.
    constructor(box, canvas, on) {
        super(box, canvas);
        this.on = on;
        this.pointed = this.focused = null;
        this.listen();
    }

    // @picture: { lanes, duration, color(number), label(number), marks, found }
    show(picture) {
        const last = this.picture;

        this.picture = picture;
        if (!last)
            this.range = this.whole();
        if (!last || last.lanes.length !== picture.lanes.length ||
            last.lanes.some((lane, i) => lane !== picture.lanes[i]))
            this.pointed = this.focused = null;
        this.place();
        this.resize();
    }

    whole() {
        return [0, Math.max(this.picture.duration, LEAST_NS)];
    }

    // Computes the positions of lanes, from the top.
    place() {
        let top = AXIS;

        this.tops = this.picture.lanes.map(lane => {
            const at = top;

            top += this.above(lane) + lane.rows.length * ROW + BELOW;
            return at;
        });
        this.height = top;
    }

    listen() {
        const { canvas } = this;

        canvas.addEventListener('mousemove', event => this.moved(event));
        canvas.addEventListener('mouseleave', () => this.point(null, null));
        canvas.addEventListener('mousedown', event => {
            this.drag = { x: event.offsetX, range: this.range, far: false };
        });
        window.addEventListener('mouseup', () => {
            setTimeout(() => { this.drag = null; });
        });
        canvas.addEventListener('click', event => {
            if (this.drag && this.drag.far)
                return;
            const found = this.find(event.offsetX, event.offsetY);

            if (found)
                this.focus(found);
        });
        canvas.addEventListener('dblclick', () => this.zoomTo(this.focused));
        canvas.addEventListener('wheel', event => this.wheel(event));
        canvas.addEventListener('keydown', event => {
            if (this.key(event))
                event.preventDefault();
        });
    }

    // --- positions ---

    x(time) {
        const [from, to] = this.range;

        return (time - from) * this.width / (to - from);
    }

    time(x) {
        const [from, to] = this.range;

        return from + x * (to - from) / this.width;
    }

    // The height of everything above the calls of @lane.
    above(lane) {
        return HEAD + lane.ranges.length * ROW + lane.counters.length * CURVE;
    }

    rowTop(lane, depth) {
        return this.tops[lane] + this.above(this.picture.lanes[lane]) +
            depth * ROW - this.box.scrollTop;
    }

    find(x, y) {
        const at = y + this.box.scrollTop;

        if (y < AXIS)
            return null;
        for (const [lane, about] of this.picture.lanes.entries()) {
            const { rows } = about;
            const depth = Math.floor((at - this.tops[lane] -
                this.above(about)) / ROW);

            if (depth < 0 || depth >= rows.length)
                continue;
            const piece = this.near(rows[depth], x);

            return piece < 0 ? null : { lane, depth, piece };
        }
        return null;
    }

    // The piece at @x, or one within its pixel.
    near(row, x) {
        const piece = row.after(this.time(Math.floor(x)));

        return piece < row.count && this.x(row.begin[piece]) <= x + 1 ? piece :
            -1;
    }

    // --- drawing ---

    draw() {
        const { picture, context } = this;

        for (const [lane, about] of picture.lanes.entries()) {
            const top = this.tops[lane] - this.box.scrollTop;
            const bottom = top + this.above(about) + about.rows.length * ROW;

            if (bottom < AXIS || top > this.shown)
                continue;
            about.rows.forEach((row, depth) => {
                const y = this.rowTop(lane, depth);

                if (y + ROW > AXIS && y < this.shown)
                    this.drawRow(row, y);
            });
            this.drawHead(about, top);
            about.ranges.forEach((ranges, i) =>
                this.drawRanges(ranges, top + HEAD + i * ROW));
            about.counters.forEach((counter, i) =>
                this.drawCounter(counter, top + HEAD +
                    about.ranges.length * ROW + i * CURVE));
        }
        context.globalAlpha = 1;
        this.outline(this.pointed, 1);
        if (document.activeElement === this.canvas)
            this.outline(this.focused, 2);
        this.drawAxis();
    }

    drawRow(row, y) {
        const [from, to] = this.range;

        for (let i = row.after(from); i < row.count && row.begin[i] < to;) {
            const left = Math.max(this.x(row.begin[i]), 0);
            const right = Math.min(this.x(row.end[i]), this.width);

            if (right - left >= 1.5) {
                this.drawPiece(row, i, left, right, y);
                i++;
            } else {
                const pixel = Math.floor(left);

                this.drawPiece(row, i, pixel, pixel + 1, y);
                i = row.after(this.time(pixel + 1), i + 1);
            }
        }
    }

    drawPiece(row, piece, left, right, y) {
        const { context, picture } = this;
        const number = row.number(piece);
        const found = picture.marks && number >= 0 && picture.marks[number];

        context.globalAlpha = picture.marks && !found ? 0.35 : 1;
        context.fillStyle = found ? picture.found : number < 0 ?
            picture.merged : picture.color(number);
        context.fillRect(left, y, Math.max(right - left - (
            right - left > 3 ? 1 : 0), 1), ROW - 1);
        if (right - left < 24)
            return;
        context.globalAlpha = picture.marks && !found ? 0.6 : 1;
        context.fillStyle = picture.text;
        context.fillText(this.fit(this.label(row, piece), right - left - 9),
            left + 4, y + ROW / 2);
    }

    label(row, piece) {
        if (!row.what[piece])
            return `${humanCount(row.calls[piece])} short calls`;
        const name = this.picture.label(row.number(piece));
        const [passed, result] = row.values.get(piece) || [null, null];

        return name + (passed === null ? '' : `(${passed})`) +
            (result === null ? '' : ` = ${result}`);
    }

    drawHead(about, top) {
        const { context, picture } = this;
        const left = Math.max(this.x(about.begin_ns), 0);
        const right = Math.min(this.x(about.end_ns), this.width);

        context.globalAlpha = 1;
        context.fillStyle = picture.line;
        context.fillRect(left, top + HEAD - 3, Math.max(right - left, 0), 1);
        context.fillStyle = picture.strong;
        context.fillText(about.title, 4, top + HEAD / 2);
        this.drawGaps(about.gaps, top + HEAD - 5);
        this.drawFlags(about, top);
    }

    // Draws when the thread had no processor: it was waiting, or (bad)
    // preempted.
    drawGaps(gaps, y) {
        const { context, picture } = this;

        for (const gap of gaps) {
            const left = Math.max(this.x(gap.from), 0);
            const right = Math.min(this.x(gap.to), this.width);

            if (right < 0 || left > this.width)
                continue;
            context.fillStyle = gap.waits ? picture.line : picture.bad;
            context.fillRect(left, y, Math.max(right - left, 1), 4);
        }
    }

    // Draws the program's marks, and where calls are missing.
    drawFlags(about, top) {
        const { context, picture } = this;
        let free = this.widthOf(about.title) + 24;

        for (const mark of about.flags) {
            const x = this.x(mark.ns);

            if (x < 0 || x > this.width)
                continue;
            context.fillStyle = mark.bad ? picture.bad : picture.accent;
            context.fillRect(x, top + 2, 1, HEAD - 5);
            const text = this.fit(mark.title, 200);

            if (x + 4 < free)
                continue;
            context.fillText(text, x + 4, top + HEAD / 2 - 1);
            free = x + 12 + this.widthOf(text);
        }
    }

    drawRanges(ranges, y) {
        const { context, picture } = this;

        for (const range of ranges) {
            const left = Math.max(this.x(range.from), 0);
            const right = Math.min(this.x(range.to), this.width);

            if (right < 0 || left > this.width)
                continue;
            context.fillStyle = picture.part;
            context.fillRect(left, y + 2, Math.max(right - left - 1, 1),
                ROW - 5);
            context.fillStyle = picture.accent;
            context.fillRect(left, y + 2, 1, ROW - 5);
            if (right - left < 24)
                continue;
            context.fillStyle = picture.strong;
            context.fillText(this.fit(range.text, right - left - 9), left + 5,
                y + ROW / 2);
        }
    }

    // Draws steps, from the minimum (or 0) at the bottom to the maximum.
    drawCounter(counter, y) {
        const { context, picture } = this;
        const { points, least, most } = counter;
        const bottom = y + CURVE - 4;
        const scale = (CURVE - 10) / (most - least || 1);

        context.fillStyle = picture.part;
        points.forEach((point, i) => {
            const left = Math.max(this.x(point.ns), 0);
            const right = Math.min(i + 1 < points.length ?
                this.x(points[i + 1].ns) : this.width, this.width);
            const height = Math.max((point.value - least) * scale, 1);

            if (right > 0 && left < this.width)
                context.fillRect(left, bottom - height,
                    Math.max(right - left, 1), height);
        });
        context.fillStyle = picture.strong;
        context.fillText(this.fit(`${counter.text}: ${least} to ${most}`, 300),
            4, y + CURVE / 2);
    }

    // Times at round numbers, at least a hundred pixels apart.
    drawAxis() {
        const { context, picture } = this;
        const [from, to] = this.range;
        const least = (to - from) * 100 / this.width;
        const ten = 10 ** Math.floor(Math.log10(least));
        const step = ten * [1, 2, 5, 10].find(each => each * ten >= least);

        context.fillStyle = picture.ground;
        context.fillRect(0, 0, this.width, AXIS - 2);
        context.fillStyle = picture.line;
        context.fillRect(0, AXIS - 3, this.width, 1);
        for (let i = Math.ceil(from / step); i * step <= to; i++) {
            const x = this.x(i * step);

            context.fillStyle = picture.line;
            context.fillRect(x, 0, 1, AXIS - 3);
            context.fillStyle = picture.muted;
            context.fillText(timeText(i * step, step), x + 4, AXIS / 2 - 1);
        }
    }

    outline(at, width) {
        if (!at)
            return;
        const { context, picture } = this;
        const row = picture.lanes[at.lane].rows[at.depth];
        const left = Math.max(this.x(row.begin[at.piece]), 0);
        const right = Math.min(this.x(row.end[at.piece]), this.width);

        if (right < 0 || left > this.width)
            return;
        context.strokeStyle = picture.strong;
        context.lineWidth = width;
        context.strokeRect(left + width / 2,
            this.rowTop(at.lane, at.depth) + width / 2 - 0.5,
            Math.max(right - left - 1 - width, 1), ROW - width);
    }

    // --- navigation ---

    moved(event) {
        const { drag } = this;

        if (drag && event.buttons & 1) {
            const far = event.offsetX - drag.x;

            drag.far = drag.far || Math.abs(far) > 3;
            if (!drag.far)
                return;
            const by = -far * (drag.range[1] - drag.range[0]) / this.width;

            this.setRange(drag.range[0] + by, drag.range[1] + by);
            this.point(null, null);
            return;
        }
        this.point(this.find(event.offsetX, event.offsetY), event);
    }

    point(at, event) {
        this.pointed = at;
        this.drawSoon();
        this.canvas.style.cursor = at ? 'pointer' : 'grab';
        this.on.point(at, event);
    }

    focus(at) {
        this.focused = at;
        this.scrollBy(this.rowTop(at.lane, at.depth), AXIS + HEAD);
        this.drawSoon();
        this.on.focus(at);
    }

    // Limits a range to the recording, and to the shortest visible one.
    clip(from, to) {
        const [, all] = this.whole();
        const width = Math.min(Math.max(to - from, LEAST_NS), all);
        const begin = Math.min(Math.max((from + to - width) / 2, 0),
            all - width);

        return [begin, begin + width];
    }

    setRange(from, to) {
        this.range = this.clip(from, to);
        this.drawSoon();
        this.on.zoom();
    }

    // Zooms in by @factor, around @x.
    zoom(factor, x = this.width / 2) {
        const [from, to] = this.range;
        const center = this.time(x);

        this.setRange(center - (center - from) / factor,
            center + (to - center) / factor);
    }

    pan(part) {
        const [from, to] = this.range;
        const by = (to - from) * part;

        this.setRange(from + by, to + by);
    }

    // The wheel scrolls up and down; with Ctrl or Shift it zooms.
    wheel(event) {
        if (event.ctrlKey || event.shiftKey) {
            const by = event.deltaY || event.deltaX;

            this.zoom(2 ** (-Math.sign(by) / 2), event.offsetX);
            event.preventDefault();
        } else if (event.deltaX) {
            this.pan(event.deltaX / this.width);
            event.preventDefault();
        }
    }

    zoomTo(at) {
        if (!at)
            return;
        const row = this.picture.lanes[at.lane].rows[at.depth];
        const begin = row.begin[at.piece], end = row.end[at.piece];
        const room = (end - begin) * 0.04;

        this.move(this.clip(begin - room, end + room));
    }

    zoomOut() {
        this.move(this.whole());
    }

    settled() {
        this.on.zoom();
    }

    isWhole() {
        const [from, to] = this.range, [first, last] = this.whole();

        return from <= first && to >= last;
    }

    // The next piece in the row, or the piece at the same time one row away.
    step(along, down) {
        const { focused, picture } = this;

        if (!focused)
            return this.first();
        const { rows } = picture.lanes[focused.lane];
        const row = rows[focused.depth];
        const depth = focused.depth + down;
        let piece = focused.piece + along;

        if (depth < 0 || depth >= rows.length)
            return this.nextLane(down);
        if (down)
            piece = down > 0 ? rows[depth].after(row.begin[focused.piece]) :
                rows[depth].at(row.begin[focused.piece]);
        if (piece < 0 || piece >= rows[depth].count ||
            (down > 0 && rows[depth].begin[piece] >= row.end[focused.piece]))
            return down > 0 ? this.nextLane(1) : null;
        return { lane: focused.lane, depth, piece };
    }

    first() {
        const lane = this.picture.lanes.findIndex(each => each.rows.length);

        return lane < 0 ? null : { lane, depth: 0, piece: 0 };
    }

    nextLane(step) {
        const { lanes } = this.picture;
        let lane = this.focused.lane + step;

        while (lanes[lane] && !lanes[lane].rows.length)
            lane += step;
        return lanes[lane] ? { lane, depth: 0, piece: 0 } : null;
    }

    // Focuses @at, and scrolls until it is visible.
    go(at) {
        if (!at)
            return;
        this.focus(at);
        const row = this.picture.lanes[at.lane].rows[at.depth];
        const [from, to] = this.range;
        const begin = row.begin[at.piece], end = row.end[at.piece];

        if ((end - begin) / (to - from) * this.width < 12) {
            const width = (end - begin || 1) * this.width / 40;

            this.move(this.clip((begin + end - width) / 2,
                (begin + end + width) / 2));
        } else if (end < from || begin > to) {
            const half = (to - from) / 2;

            this.move(this.clip((begin + end) / 2 - half,
                (begin + end) / 2 + half));
        }
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.picture)
            return false;
        const actions = {
            ArrowLeft: () => this.go(this.step(-1, 0)),
            ArrowRight: () => this.go(this.step(1, 0)),
            ArrowUp: () => this.go(this.step(0, -1)),
            ArrowDown: () => this.go(this.step(0, 1)),
            Home: () => this.go(this.first()),
            Enter: () => this.zoomTo(this.focused),
            '+': () => this.zoom(2),
            '-': () => this.zoom(1 / 2),
            a: () => this.pan(-0.2),
            d: () => this.pan(0.2),
            w: () => this.zoom(2),
            s: () => this.zoom(1 / 2),
        };

        if (!actions[event.key])
            return false;
        actions[event.key]();
        return true;
    }
}
