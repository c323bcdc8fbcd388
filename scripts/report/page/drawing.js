// Common code of drawings that are wider than the window: a canvas as large as
// its box, a box that scrolls, a visible range from left to right, names cut to
// fit.

const ROW = 20;                 // height of a frame
const MOVE_MS = 140;            // duration of a zoom
const FITTED_MOST = 50000;      // limit of names that were cut before

// What is still to come, for who waits until the page rests: names in an
// attribute of the page.
const pending = new Set();

function setPending(name, is) {
    const { dataset } = document.documentElement;

    if (pending.has(name) === is)
        return;
    if (is)
        pending.add(name);
    else
        pending.delete(name);
    if (pending.size)
        dataset.pending = [...pending].join(' ');
    else
        delete dataset.pending;
}

class Drawing {
    // @canvas is in an element as high as the drawing, which is in @box.
    constructor(box, canvas) {
        this.box = box;
        this.canvas = canvas;
        this.context = canvas.getContext('2d');
        this.widths = new Map();
        this.fitted = new Map();
        new ResizeObserver(() => this.resize()).observe(box);
        box.addEventListener('scroll', () => this.drawSoon());
        canvas.addEventListener('focus', () => this.drawSoon());
        canvas.addEventListener('blur', () => this.drawSoon());
    }

    // Follows the pointer and the arrow keys from item to item of the picture.
    // @at(x) is the number of the item at @x, @count() how many there are;
    // @on(i, event) hears the number of the item, or -1.
    follow(at, count, on) {
        const { canvas } = this;

        this.pointed = -1;
        this.point = (i, event) => {
            this.pointed = i;
            this.drawSoon();
            on(i, event);
        };
        canvas.addEventListener('pointermove', event =>
            this.point(Math.min(at(event.offsetX), count() - 1), event));
        canvas.addEventListener('pointerleave', () => this.point(-1, null));
        canvas.addEventListener('keydown', event => {
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];

            if (!step)
                return;
            this.point(Math.min(Math.max(this.pointed + step, 0),
                count() - 1), null);
            event.preventDefault();
        });
    }

    resize() {
        if (!this.picture)
            return;
        const { box, canvas } = this;
        const scale = window.devicePixelRatio || 1;

        canvas.parentElement.style.height = `${this.height}px`;
        this.width = canvas.parentElement.clientWidth;
        this.shown = Math.min(box.clientHeight, Math.max(this.height, ROW));
        canvas.style.width = `${this.width}px`;
        canvas.style.height = `${this.shown}px`;
        canvas.width = Math.round(this.width * scale);
        canvas.height = Math.round(this.shown * scale);
        this.context.setTransform(scale, 0, 0, scale, 0, 0);
        this.drawNow();
    }

    drawSoon() {
        if (!this.waiting)
            this.waiting = requestAnimationFrame(() => this.drawNow());
    }

    drawNow() {
        cancelAnimationFrame(this.waiting);
        this.waiting = 0;
        if (!this.picture || !this.width)       // a window may have no width
            return;
        this.context.clearRect(0, 0, this.width, this.shown);
        this.context.font = this.picture.font;
        this.context.textBaseline = 'middle';
        this.draw();
    }

    // Moves to the range @to with an animation.
    move(to) {
        const from = this.range;
        const begin = performance.now();

        cancelAnimationFrame(this.moving);
        setPending(this.canvas.id, false);
        if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
            this.range = to;
            this.drawSoon();
            this.settled();
            return;
        }
        const step = now => {
            const part = Math.min(Math.max(now - begin, 0) / MOVE_MS, 1);
            const eased = 1 - (1 - part) ** 3;

            this.range = part < 1 ? [0, 1].map(side =>
                from[side] + (to[side] - from[side]) * eased) : to;
            this.drawNow();
            if (part < 1) {
                this.moving = requestAnimationFrame(step);
                return;
            }
            setPending(this.canvas.id, false);
            this.settled();
        };
        setPending(this.canvas.id, true);
        this.moving = requestAnimationFrame(step);
    }

    // The animation has reached its range.
    settled() {
    }

    // Scrolls so that the row at @top is visible; @above of it is covered.
    scrollBy(top, above) {
        const { box } = this;

        if (top < above)
            box.scrollTop += top - above;
        else if (top + ROW > box.clientHeight)
            box.scrollTop += top + ROW - box.clientHeight;
    }

    // Cuts @name to @width.
    fit(name, width) {
        let text = '';

        for (const each of lessAndLess(name)) {
            text = shorten(each, 500);
            if (this.widthOf(text) <= width)
                return text;
        }
        let least = 0, most = text.length - 1;

        while (least < most) {
            const middle = Math.ceil((least + most) / 2);

            if (this.context.measureText(
                `${text.slice(0, middle)}\u2026`).width <= width)
                least = middle;
            else
                most = middle - 1;
        }
        return least ? `${text.slice(0, least)}\u2026` : '';
    }

    // The same, for what is drawn again and again while its width changes: the
    // width is one of few.
    fitSoon(name, width) {
        const step = 8 * Math.floor(width / 8);
        const key = `${step} ${name}`;

        if (this.fitted.size > FITTED_MOST)
            this.fitted.clear();
        if (!this.fitted.has(key))
            this.fitted.set(key, this.fit(name, step));
        return this.fitted.get(key);
    }

    widthOf(text) {
        if (!this.widths.has(text))
            this.widths.set(text, this.context.measureText(text).width);
        return this.widths.get(text);
    }
}
