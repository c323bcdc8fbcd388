// Leads through the timeline: mouse, touch and keys.  A drag moves the window; on
// the axis, or with Shift, it chooses a span of time.

class Timeline extends TimelineDrawing {
    // @on: { point(piece, event), curve(value, event), wait(wait, event),
    // focus(piece), zoom(), span(), lanes() }; a piece is { lane, depth, piece }, or null.
    constructor(box, canvas, on) {
        super(box, canvas);
        this.on = on;
        this.listen();
    }

    listen() {
        const { canvas } = this;

        canvas.addEventListener('pointermove', event => this.moved(event));
        canvas.addEventListener('pointerleave', () => this.point(null, null));
        canvas.addEventListener('pointerdown', event => this.pressed(event));
        for (const end of ['pointerup', 'pointercancel'])
            canvas.addEventListener(end, () => this.released());
        canvas.addEventListener('click', event => this.clicked(event));
        canvas.addEventListener('dblclick', () => this.zoomTo(this.focused));
        canvas.addEventListener('wheel', event => this.wheel(event));
        canvas.addEventListener('keydown', event => {
            if (this.key(event))
                event.preventDefault();
        });
    }

    // --- mouse and touch ---

    pressed(event) {
        if (event.button)
            return;
        this.drag = { x: event.offsetX, range: this.range, far: false,
            span: event.shiftKey || event.offsetY < AXIS };
        this.canvas.setPointerCapture(event.pointerId);
    }

    moved(event) {
        const { drag } = this;

        if (!drag || !(event.buttons & 1)) {
            this.pointAt(event);
            return;
        }
        const far = event.offsetX - drag.x;

        drag.far = drag.far || Math.abs(far) > 3;
        if (!drag.far)
            return;
        if (drag.span) {
            this.span = [drag.x, event.offsetX].map(x => Math.min(Math.max(
                this.time(x), 0), this.whole()[1])).sort((a, b) => a - b);
            this.drawSoon();
        } else {
            const by = -far * (drag.range[1] - drag.range[0]) / this.width;

            this.setRange(drag.range[0] + by, drag.range[1] + by);
        }
        this.point(null, null);
    }

    released() {
        const { drag } = this;

        if (drag && drag.span && drag.far)
            this.on.span();
        // The click that follows belongs to the drag.
        setTimeout(() => { this.drag = null; });
    }

    clicked(event) {
        if (this.drag && this.drag.far)
            return;
        const head = this.headAt(event.offsetY);
        const found = this.find(event.offsetX, event.offsetY);
        const wait = findWait(this, event.offsetX, event.offsetY);

        if (event.offsetY < AXIS)
            this.setSpan(null);
        else if (head >= 0)
            this.toggle(head);
        else if (wait && holderOf(this.picture, wait))
            goToHolder(wait);
        else if (found)
            this.focus(found);
    }

    pointAt(event) {
        const { offsetX: x, offsetY: y } = event;
        const curve = this.findCounter(x, y), wait = findWait(this, x, y);

        if (curve)
            this.on.curve(curve, event);
        else if (wait)
            this.on.wait(wait, event);
        else
            this.point(this.find(x, y), event);
        this.canvas.style.cursor = y < AXIS ? 'ew-resize' :
            this.pointed || wait || this.headAt(y) >= 0 ? 'pointer' : 'grab';
    }

    point(at, event) {
        this.pointed = at;
        this.drawSoon();
        this.on.point(at, event);
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

    // --- lanes ---

    // Opens or closes @lane.
    toggle(lane) {
        const about = this.picture.lanes[lane];

        about.closed = !about.closed;
        this.place();
        this.resize();
        this.on.lanes();
    }

    closeAll(closed) {
        for (const lane of this.picture.lanes)
            lane.closed = closed;
        this.place();
        this.resize();
        this.on.lanes();
    }

    // --- time ---

    // @span: [from, to], or null.
    setSpan(span) {
        if (!span && !this.span)
            return;
        this.span = span;
        this.drawSoon();
        this.on.span();
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

    zoomTo(at) {
        if (!at)
            return;
        const [begin, end] = this.timesOf(at);
        const room = (end - begin) * 0.04;

        this.move(this.clip(begin - room, end + room));
    }

    zoomOut() {
        this.move(this.whole());
    }

    settled() {
        this.on.zoom();
    }

    // --- calls ---

    timesOf(at) {
        const row = this.picture.lanes[at.lane].rows[at.depth];

        return [row.begin[at.piece], row.end[at.piece]];
    }

    focus(at) {
        const about = this.picture.lanes[at.lane];

        this.focused = at;
        if (about.closed && at.depth >= THIN_MOST)
            this.toggle(at.lane);
        this.scrollBy(this.rowTop(at.lane, at.depth), AXIS + HEAD);
        this.drawSoon();
        this.on.focus(at);
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
            h: () => goToHolder(),
            '+': () => this.zoom(2),
            '-': () => this.zoom(1 / 2),
            a: () => this.pan(-0.2),
            d: () => this.pan(0.2),
            w: () => this.zoom(2),
            s: () => this.zoom(1 / 2),
            x: () => this.toggle(this.focused ? this.focused.lane : 0),
            X: () => this.closeAll(!this.picture.lanes[0].closed),
            r: () => this.setSpan(this.range),
            e: () => this.focused && this.setSpan(this.timesOf(this.focused)),
        };

        if (!actions[event.key])
            return false;
        actions[event.key]();
        return true;
    }
}
