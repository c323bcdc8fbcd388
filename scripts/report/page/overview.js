// The whole time in a strip: how deep the calls are, lane by lane, and the window
// of the timeline.  The window and its edges can be dragged; a drag elsewhere
// opens a new one.

const STRIP = 48;               // height of the strip
const EDGE = 6;                 // pixels around an edge that take hold of it

class Overview extends Drawing {
    // Follows @timeline, and leads it.
    constructor(box, canvas, timeline) {
        super(box, canvas);
        this.timeline = timeline;
        this.height = STRIP;
        canvas.addEventListener('pointerdown', event => this.pressed(event));
        canvas.addEventListener('pointermove', event => this.moved(event));
        for (const end of ['pointerup', 'pointercancel'])
            canvas.addEventListener(end, () => { this.drag = null; });
        canvas.addEventListener('keydown', event => {
            if (this.key(event))
                event.preventDefault();
        });
    }

    show(picture) {
        this.picture = picture;
        this.shape = null;
        this.resize();
    }

    resize() {
        this.shape = null;
        super.resize();
    }

    x(time) {
        return time * this.width / this.timeline.whole()[1];
    }

    time(x) {
        return x * this.timeline.whole()[1] / this.width;
    }

    draw() {
        const { context, picture, timeline } = this;
        const [left, right] = timeline.range.map(time => this.x(time));

        this.shape = this.shape || this.makeShape();
        context.drawImage(this.shape, 0, 0, this.width, STRIP);
        if (timeline.span) {
            const [from, to] = timeline.span.map(time => this.x(time));

            context.globalAlpha = 0.4;
            context.fillStyle = picture.accent;
            context.fillRect(from, 0, Math.max(to - from, 1), STRIP);
        }
        context.globalAlpha = 0.55;
        context.fillStyle = picture.line;
        context.fillRect(0, 0, left, STRIP);
        context.fillRect(right, 0, this.width - right, STRIP);
        context.globalAlpha = 1;
        context.strokeStyle = picture.accent;
        context.lineWidth = document.activeElement === this.canvas ? 3 : 1.5;
        context.strokeRect(left + 1, 1, Math.max(right - left - 2, 1),
            STRIP - 2);
        context.fillStyle = picture.accent;
        for (const x of [left - 1, right - 2])
            context.fillRect(x, STRIP / 2 - 8, 3, 16);
    }

    // Each lane has a band in it; the deeper the calls, the higher the shape.
    makeShape() {
        const { picture } = this;
        const canvas = document.createElement('canvas');
        const [, all] = this.timeline.whole();
        const { lanes } = picture;
        const band = STRIP / Math.max(lanes.length, 1);
        const deepest = Math.max(1, ...lanes.map(lane => lane.rows.length));

        canvas.width = this.canvas.width;
        canvas.height = this.canvas.height;
        const context = canvas.getContext('2d');
        const scale = canvas.width / this.width;

        context.setTransform(scale, 0, 0, scale, 0, 0);
        context.fillStyle = picture.shape;
        lanes.forEach((lane, i) => {
            const depths = this.depthsOf(lane, all);

            depths.forEach((depth, x) => {
                const height = depth ? Math.max(depth / deepest * band, 1) : 0;

                context.fillRect(x, (i + 1) * band - height, 1, height);
            });
        });
        return canvas;
    }

    // The depth of the deepest call of @lane by pixel.
    depthsOf(lane, all) {
        const depths = new Uint32Array(Math.ceil(this.width));
        const pixel = all / this.width;

        lane.rows.forEach((row, depth) => {
            const take = (from, to) => {
                const last = Math.min(Math.floor(this.x(to)),
                    depths.length - 1);

                for (let x = Math.max(Math.floor(this.x(from)), 0); x <= last;
                    x++)
                    depths[x] = depth + 1;
            };

            if (row.count > MANY && row.levels().visit(0, all, pixel,
                (piece, from, to) => take(from, to - pixel / 1e3)))
                return;
            for (let piece = 0; piece < row.count; piece++)
                take(row.begin[piece], row.end[piece]);
        });
        return depths;
    }

    // --- mouse, touch and keys ---

    // What is at @x: 'from' or 'to' (an edge), 'window', or 'outside'.
    part(x) {
        const [left, right] = this.timeline.range.map(time => this.x(time));

        if (this.timeline.isWhole())
            return 'outside';
        return Math.abs(x - left) < EDGE ? 'from' :
            Math.abs(x - right) < EDGE ? 'to' :
                x > left && x < right ? 'window' : 'outside';
    }

    pressed(event) {
        this.drag = { part: this.part(event.offsetX), x: event.offsetX,
            range: this.timeline.range };
        this.canvas.setPointerCapture(event.pointerId);
    }

    moved(event) {
        const { drag, timeline } = this;
        const part = drag ? drag.part : this.part(event.offsetX);

        this.canvas.style.cursor = { from: 'ew-resize', to: 'ew-resize',
            window: 'grab', outside: 'crosshair' }[part];
        if (!drag || !(event.buttons & 1))
            return;
        const at = this.time(event.offsetX);
        const by = this.time(event.offsetX - drag.x);
        const [from, to] = drag.range;
        const ranges = {
            window: [from + by, to + by],
            from: [Math.min(at, to), Math.max(at, to)],
            to: [Math.min(from, at), Math.max(from, at)],
            outside: [this.time(drag.x), at].sort((a, b) => a - b),
        };

        if (drag.part !== 'outside' || Math.abs(event.offsetX - drag.x) > 3)
            timeline.setRange(...ranges[drag.part]);
    }

    // Arrow keys move the window.
    key(event) {
        const { timeline } = this;
        const actions = {
            ArrowLeft: () => timeline.pan(-0.2),
            ArrowRight: () => timeline.pan(0.2),
            ArrowUp: () => timeline.zoom(2),
            ArrowDown: () => timeline.zoom(1 / 2),
            '+': () => timeline.zoom(2),
            '-': () => timeline.zoom(1 / 2),
            Home: () => timeline.zoomOut(),
            r: () => timeline.setSpan(timeline.range),
        };

        if (event.ctrlKey || event.metaKey || event.altKey ||
            !actions[event.key])
            return false;
        actions[event.key]();
        return true;
    }
}
