// Draws a tree of call paths: the width of each path is its share of the whole;
// it lies below (or above) its caller.
//
// Only visible paths are visited: a path outside of the window, or too narrow,
// is skipped with all paths below it.

const NARROW = 0.6;             // pixels; narrower paths are left out

class Flame extends Drawing {
    // @on: { point(path, event), focus(path), zoom(path) }; path -1 means none.
    constructor(box, canvas, on) {
        super(box, canvas);
        this.on = on;
        this.range = [0, 1];
        this.listen();
    }

    listen() {
        this.canvas.addEventListener('mousemove', event => {
            this.point(this.find(event.offsetX, event.offsetY), event);
        });
        this.canvas.addEventListener('mouseleave', () => this.point(-1, null));
        this.canvas.addEventListener('click', event => {
            const path = this.find(event.offsetX, event.offsetY);

            if (path < 0)
                return;
            this.focus(path);
            this.zoom(path);
        });
        this.canvas.addEventListener('keydown', event => {
            if (this.key(event))
                event.preventDefault();
        });
    }

    // @picture: { view, from, to, label(path), color(path) }, and the font and
    // colours of the whole drawing.
    show(picture) {
        const same = this.picture && this.picture.view === picture.view;

        this.picture = picture;
        this.pointed = -1;
        if (!same) {
            this.zoomed = 0;
            this.focused = 0;
            this.marks = null;
        }
        this.range = this.rangeOf(this.zoomed);
        this.resize();
    }

    rangeOf(path) {
        return [this.picture.from[path], this.picture.to[path]];
    }

    // @marks: by function, 1 for search results; or null.
    mark(marks) {
        this.marks = marks;
        this.drawSoon();
    }

    setUp(up) {
        this.up = up;
        this.resize();
    }

    get height() {
        return this.picture ? (this.picture.view.deepest + 1) * ROW : 0;
    }

    resize() {
        super.resize();
        if (this.up)
            this.box.scrollTop = this.height;
    }

    // --- positions ---

    left(path) {
        return (this.picture.from[path] - this.range[0]) * this.width /
            (this.range[1] - this.range[0]);
    }

    right(path) {
        return (this.picture.to[path] - this.range[0]) * this.width /
            (this.range[1] - this.range[0]);
    }

    top(depth) {
        return (this.up ? this.height - (depth + 1) * ROW : depth * ROW) -
            this.box.scrollTop;
    }

    find(x, y) {
        const { view } = this.picture;
        const row = Math.floor((y + this.box.scrollTop) / ROW);
        const depth = this.up ? this.height / ROW - 1 - row : row;
        let path = 0;

        while (path >= 0 && view.depth[path] < depth)
            path = this.childAt(path, x);
        return path;
    }

    childAt(path, x) {
        const { view } = this.picture;

        for (let c = path + 1; c < view.next[path]; c = view.next[c])
            if (this.left(c) <= x && x < this.right(c) &&
                this.right(c) - this.left(c) >= NARROW)
                return c;
        return -1;
    }

    // --- drawing ---

    draw() {
        const { picture } = this;
        const { view } = picture;
        const narrow = new Narrow(this);

        this.drawn = new Uint8Array(picture.functions);
        this.hasNarrow = false;
        for (let i = 0; i < view.count;) {
            const left = Math.max(this.left(i), 0);
            const right = Math.min(this.right(i), this.width);
            const top = this.top(view.depth[i]);
            const gone = this.up ? top + ROW < 0 : top > this.shown;

            if (gone || right <= left) {
                i = view.next[i];
            } else if (right - left < NARROW) {
                narrow.add(i, left, right, top);
                i = view.next[i];
            } else {
                if (top + ROW > 0 && top < this.shown)
                    this.drawFrame(i, left, right, top);
                i++;
            }
        }
        narrow.end();
        showLegendSoon();
        this.outline(this.pointed, 1);
        if (document.activeElement === this.canvas)
            this.outline(this.focused, 2);
    }

    drawFrame(path, left, right, top) {
        const { context, picture } = this;
        const number = picture.view.function[path];
        const found = this.marks && number >= 0 && this.marks[number];
        const above = path !== this.zoomed && this.isAbove(path);

        if (number >= 0)
            this.drawn[number] = 1;
        context.globalAlpha = this.marks && !found ? 0.35 : above ? 0.55 : 1;
        context.fillStyle = found ? picture.found : picture.color(path);
        context.fillRect(left, top, Math.max(right - left - 1, NARROW),
            ROW - 1);
        context.globalAlpha = this.marks && !found ? 0.6 : 1;
        if (right - left > 24)
            this.drawName(path, left, right, top);
        context.globalAlpha = 1;
    }

    isAbove(path) {
        return path < this.zoomed && this.zoomed < this.picture.view.next[path];
    }

    drawName(path, left, right, top) {
        const { context, picture } = this;

        const note = picture.note && right - left > 140 ?
            picture.note(path) : '';
        const room = note ? this.widthOf(note) + 12 : 0;

        context.fillStyle = picture.text;
        context.fillText(this.fit(picture.label(path), right - left - room - 9),
            left + 4, top + ROW / 2);
        if (note)
            context.fillText(note, right - room + 6, top + ROW / 2);
    }

    outline(path, width) {
        const { context, picture } = this;

        if (path < 0)
            return;
        const left = Math.max(this.left(path), 0);
        const right = Math.min(this.right(path), this.width);
        const top = this.top(picture.view.depth[path]);

        if (right < 0 || left > this.width)
            return;
        context.strokeStyle = picture.outline;
        context.lineWidth = width;
        context.strokeRect(left + width / 2, top + width / 2 - 0.5,
            Math.max(right - left - 1 - width, 1), ROW - width);
    }

    // --- moving ---

    point(path, event) {
        if (this.pointed !== path) {
            this.pointed = path;
            this.drawSoon();
        }
        this.canvas.style.cursor = path < 0 ? 'default' : 'pointer';
        this.on.point(path, event);
    }

    focus(path) {
        this.focused = path;
        this.scrollTo(path);
        this.drawSoon();
        this.on.focus(path);
    }

    zoom(path) {
        this.zoomed = path;
        this.on.zoom(path);
        this.move(this.rangeOf(path));
    }

    scrollTo(path) {
        this.scrollBy(this.top(this.picture.view.depth[path]), 0);
    }

    // The paths beside @path, from left to right.
    siblings(path) {
        const { view, from } = this.picture;
        const found = [];

        if (path <= 0)
            return [0];
        for (let c = view.parent[path] + 1; c < view.next[view.parent[path]];
            c = view.next[c])
            found.push(c);
        return found.sort((a, b) => from[a] - from[b]);
    }

    neighbour(step) {
        const row = this.siblings(this.focused);
        const place = row.indexOf(this.focused) + step;

        return place >= 0 && place < row.length ? row[place] : -1;
    }

    firstBelow() {
        const { view } = this.picture;

        return this.focused + 1 < view.next[this.focused] ?
            this.siblings(this.focused + 1)[0] : -1;
    }

    // Focuses @path, and zooms so that it is wide enough to be visible.
    go(path) {
        const { view } = this.picture;

        if (path < 0)
            return;
        this.focus(path);
        const [from, to] = this.rangeOf(this.zoomed);
        const width = (this.picture.to[path] - this.picture.from[path]) /
            (to - from) * this.width;

        if (path < this.zoomed || path >= view.next[this.zoomed])
            this.zoom(path);
        else if (width < 12)
            this.zoom(view.parent[path] > this.zoomed ? view.parent[path] :
                path);
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.picture)
            return false;
        const down = () => this.go(this.firstBelow());
        const above = () => this.go(this.picture.view.parent[this.focused]);

        switch (event.key) {
        case 'ArrowDown':
            (this.up ? above : down)();
            return true;
        case 'ArrowUp':
            (this.up ? down : above)();
            return true;
        case 'ArrowLeft':
            this.go(this.neighbour(-1));
            return true;
        case 'ArrowRight':
            this.go(this.neighbour(1));
            return true;
        case 'Home':
            this.go(0);
            return true;
        case 'Enter':
            this.zoom(this.focused);
            return true;
        default:
            return false;
        }
    }
}

// Adjacent paths that are too narrow become one grey piece.
class Narrow {
    constructor(flame) {
        this.flame = flame;
        this.piece = null;
    }

    add(path, left, right, top) {
        const parent = this.flame.picture.view.parent[path];
        const { piece } = this;

        if (piece && piece.parent === parent && left <= piece.right + 1 &&
            right >= piece.left - 1) {
            piece.left = Math.min(piece.left, left);
            piece.right = Math.max(piece.right, right);
            return;
        }
        this.end();
        this.piece = { parent, left, right, top };
    }

    end() {
        const { piece, flame } = this;

        if (!piece || piece.right - piece.left < 0.3)
            return;
        flame.hasNarrow = true;
        flame.context.fillStyle = flame.picture.merged;
        flame.context.fillRect(piece.left, piece.top,
            piece.right - piece.left, ROW - 1);
    }
}
