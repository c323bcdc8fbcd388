// Draws the timeline.  Everything that there may be many of becomes pixels
// (raster.js); of rows with many pieces, the level of detail is taken that has
// one or two pixels for each piece (levels.js).  So the time for a picture
// depends on its size, not on the number of calls.

const MANY = 500;               // pieces; rows with more have levels of detail
const WIDE = 2;                 // pixels; wider pieces are drawn exactly

class TimelineDrawing extends Lanes {
    draw() {
        const { picture, context } = this;

        this.raster = this.raster || new Raster();
        this.raster.begin(context);
        this.texts = [];
        this.drawn = new Uint8Array(picture.functions);
        this.hasRuns = false;
        const visible = [...picture.lanes.keys()].filter(lane =>
            this.laneTop(lane) < this.shown &&
            this.laneTop(lane) + this.heightOf(picture.lanes[lane]) > AXIS);

        for (const lane of visible)
            this.drawLane(lane);
        const flows = [];

        this.hasWaits = false;
        for (const lane of visible)
            drawBars(this, lane, flows);
        this.raster.end();
        for (const [text, x, y, color, alpha] of this.texts) {
            context.globalAlpha = alpha;
            context.fillStyle = color;
            context.fillText(text, x, y);
        }
        context.globalAlpha = 1;
        for (const flow of flows)
            drawFlow(this, flow);
        drawMessages(this);
        this.outline(this.pointed, 1);
        if (document.activeElement === this.canvas || this.isExported)
            this.outline(this.focused, 2);
        this.drawSpan();
        for (const lane of visible)
            this.drawHead(lane);
        this.drawAxis();
        this.on.drawn();
    }

    drawLane(lane) {
        const about = this.picture.lanes[lane];
        let top = this.laneTop(lane) + HEAD;

        if (!about.closed) {
            if (about.flags.length) {
                this.drawFlags(about, top);
                top += MARKS;
            }
            for (const ranges of about.ranges) {
                this.drawRanges(ranges, top);
                top += ROW;
            }
            for (const counter of about.counters) {
                this.drawCounter(counter, top);
                top += CURVE;
            }
        }
        for (let depth = 0; depth < this.rowCount(about); depth++) {
            const y = this.rowTop(lane, depth);
            const height = this.rowHeight(about);

            if (y + height > AXIS && y < this.shown)
                this.drawRow(about.rows[depth], y, height);
        }
    }

    // --- calls ---

    drawRow(row, y, height) {
        this.raster.beginRow(y, height - 1);
        this.drawPieces(row, y, height);
        this.raster.endRow();
    }

    drawPieces(row, y, height) {
        const [from, to] = this.range;
        const pixel = (to - from) / this.width;

        if (row.count > MANY && this.drawLevel(row, y, height, pixel))
            return;
        for (let i = row.after(from); i < row.count && row.begin[i] < to;) {
            const left = Math.max(this.x(row.begin[i]), 0);
            const right = Math.min(this.x(row.end[i]), this.width);

            if (right - left >= WIDE) {
                this.drawPiece(row, i, left, right, y, height);
                i++;
            } else {
                const x = Math.floor(left);

                this.drawPiece(row, i, x, x + 1, y, height);
                i = row.after(this.time(x + 1), i + 1);
            }
        }
    }

    drawLevel(row, y, height, pixel) {
        const [from, to] = this.range;
        let last = -1;

        return row.levels().visit(from, to, pixel, (piece, begin, end) => {
            if (piece === last)
                return;
            const left = Math.max(this.x(row.begin[piece]), 0);
            const right = Math.min(this.x(row.end[piece]), this.width);

            if (right - left >= WIDE) {
                this.drawPiece(row, piece, left, right, y, height);
                last = piece;
            } else {
                this.drawPiece(row, piece, this.x(begin), this.x(end), y,
                    height);
            }
        });
    }

    drawPiece(row, piece, left, right, y, height) {
        const { picture } = this;
        const number = row.number(piece);
        const found = picture.marks && number >= 0 && picture.marks[number];
        const faint = picture.marks && !found;

        if (number < 0)
            this.hasRuns = true;
        else
            this.drawn[number] = 1;
        this.raster.rect(left, y, right - left - (right - left > 3 ? 1 : 0),
            height - 1, found ? picture.found : number < 0 ? picture.merged :
                picture.color(number), faint ? 0.35 : 1);
        if (right - left >= 24 && height === ROW)
            this.texts.push([this.fitSoon(this.label(row, piece),
                right - left - 9), left + 4, y + ROW / 2, picture.text,
            faint ? 0.6 : 1]);
    }

    label(row, piece) {
        if (!row.what[piece])
            return `${humanCount(row.calls[piece])} short calls`;
        const name = this.picture.label(row.number(piece));
        const [passed, result] = row.values.get(piece) || [null, null];

        return name + (passed === null ? '' : `(${passed})`) +
            (result === null ? '' : ` = ${result}`);
    }

    // --- what is above the calls ---

    drawHead(lane) {
        const { context, picture } = this;
        const about = picture.lanes[lane];
        const top = this.headTop(lane);
        const left = Math.max(this.x(about.begin_ns), 0);
        const right = Math.min(this.x(about.end_ns), this.width);

        context.fillStyle = picture.ground;
        context.fillRect(0, top, this.width, HEAD - 1);
        context.fillStyle = picture.line;
        context.fillRect(left, top + HEAD - 2, Math.max(right - left, 0), 1);
        this.drawGaps(about.gaps, top + HEAD - 5);
        context.fillStyle = picture.strong;
        context.fillText(`${about.closed ? '\u25b8' : '\u25be'} ${
            this.fitSoon(about.title, this.width - 24)}`, 4,
        top + HEAD / 2 - 1);
    }

    // Draws when the thread had no processor: it was waiting, or (bad)
    // preempted.  Of those within a pixel, one is drawn.
    drawGaps(gaps, y) {
        const { context, picture } = this;
        let next = 0;

        for (let i = firstAfter(gaps, this.range[0]); i < gaps.length; i++) {
            const left = Math.max(this.x(gaps[i].from), next);
            const right = Math.min(this.x(gaps[i].to), this.width);

            if (left > this.width)
                return;
            if (right <= next)
                continue;
            next = Math.max(right, Math.floor(left) + 1);
            context.fillStyle = gaps[i].waits ? picture.line : picture.bad;
            context.fillRect(left, y, next - left, 4);
        }
    }

    // Draws the program's marks, and where calls are missing.
    drawFlags(about, top) {
        const { picture } = this;
        let free = 0, last = -1;

        for (const mark of about.flags) {
            const x = this.x(mark.ns);

            if (x < 0 || x > this.width || Math.floor(x) === last)
                continue;
            const color = mark.bad ? picture.bad : picture.accent;

            last = Math.floor(x);
            this.raster.rect(x, top + 1, 1, MARKS - 3, color);
            if (x + 4 < free)
                continue;
            const text = this.fitSoon(mark.title, 200);

            this.texts.push([text, x + 4, top + MARKS / 2, color, 1]);
            free = x + 12 + this.widthOf(text);
        }
    }

    drawRanges(ranges, y) {
        const { picture } = this;

        for (let i = firstAfter(ranges, this.range[0]); i < ranges.length &&
            ranges[i].from < this.range[1]; i++) {
            const left = Math.max(this.x(ranges[i].from), 0);
            const right = Math.min(this.x(ranges[i].to), this.width);

            this.raster.rect(left, y + 2, right - left - 1, ROW - 5,
                picture.part);
            this.raster.rect(left, y + 2, 1, ROW - 5, picture.accent);
            if (right - left >= 24)
                this.texts.push([this.fitSoon(ranges[i].text,
                    right - left - 9), left + 5, y + ROW / 2, picture.strong,
                1]);
        }
    }

    // Draws steps between two lines: the least (or 0) and the largest value.
    drawCounter(counter, y) {
        const { picture, raster } = this;
        const { shown, least, most } = counter;
        const bottom = y + CURVE - 4, top = y + 14;
        const scale = (bottom - top) / (most - least || 1);
        const zero = bottom + least * scale;
        let next = 0;

        for (let i = Math.max(counter.at(this.range[0]), 0);
            i < shown.length; i++) {
            const left = Math.max(this.x(shown[i].ns), next);
            const right = Math.min(i + 1 < shown.length ?
                this.x(shown[i + 1].ns) : this.width, this.width);
            const height = Math.abs(shown[i].value) * scale;

            if (left > this.width)
                break;
            if (right <= next)
                continue;
            next = Math.max(right, Math.floor(left) + 1);
            raster.rect(left, zero - (shown[i].value > 0 ? height : 0),
                next - left, Math.max(height, 1), picture.curve);
        }
        raster.rect(0, top - 1, this.width, 1, picture.line);
        raster.rect(0, zero, this.width, 1, picture.line);
        const high = counter.text(most), low = counter.text(least);

        this.texts.push([this.fitSoon(counter.title, this.width * 0.6), 4,
            y + 7, picture.strong, 1],
        [high, this.width - this.widthOf(high) - 4, y + 7, picture.muted, 1]);
        if (least < 0)
            this.texts.push([low, this.width - this.widthOf(low) - 4,
                bottom - 5, picture.muted, 1]);
    }

    // --- time ---

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
        if (this.span) {
            const [left, right] = this.span.map(time => this.x(time));

            context.fillStyle = picture.part;
            context.fillRect(left, 0, right - left, AXIS - 3);
        }
        for (let i = Math.ceil(from / step); i * step <= to; i++) {
            const x = this.x(i * step);

            context.fillStyle = picture.line;
            context.fillRect(x, 0, 1, AXIS - 3);
            context.fillStyle = picture.muted;
            const text = timeText(i * step, step);

            if (x + 4 + this.widthOf(text) <= this.width)
                context.fillText(text, x + 4, AXIS / 2 - 1);
        }
    }

    // What is outside of the chosen span is pale.
    drawSpan() {
        if (!this.span)
            return;
        const { context, picture } = this;
        const [left, right] = this.span.map(time =>
            Math.min(Math.max(this.x(time), 0), this.width));

        context.globalAlpha = 0.6;
        context.fillStyle = picture.ground;
        context.fillRect(0, AXIS, left, this.shown - AXIS);
        context.fillRect(right, AXIS, this.width - right, this.shown - AXIS);
        context.globalAlpha = 1;
        context.fillStyle = picture.accent;
        context.fillRect(left, AXIS - 3, 1, this.shown);
        context.fillRect(right - 1, AXIS - 3, 1, this.shown);
    }

    outline(at, width) {
        if (!at)
            return;
        const { context, picture } = this;
        const about = picture.lanes[at.lane];
        const row = about.rows[at.depth];
        const left = Math.max(this.x(row.begin[at.piece]), 0);
        const right = Math.min(this.x(row.end[at.piece]), this.width);

        if (right < 0 || left > this.width)
            return;
        context.strokeStyle = picture.strong;
        context.lineWidth = width;
        context.strokeRect(left + width / 2,
            this.rowTop(at.lane, at.depth) + width / 2 - 0.5,
            Math.max(right - left - 1 - width, 1),
            this.rowHeight(about) - width);
    }
}

// The first of @ranges, which do not overlap, that ends after @time.
function firstAfter(ranges, time) {
    let least = 0, most = ranges.length;

    while (least < most) {
        const middle = (least + most) >> 1;

        if (ranges[middle].to > time)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}
