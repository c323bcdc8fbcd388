// Where things are on the timeline: a lane for each thread (and coroutine), in it
// a head, the program's marks, ranges and counters, and a row for each depth.  A
// lane that is closed has its head and thin rows only.

const AXIS = 24;                // height of the time axis
const HEAD = 20;                // height of a lane's name
const MARKS = 16;               // height of marks
const CURVE = 44;               // height of a counter
const THIN = 4;                 // height of a row of a closed lane ...
const THIN_MOST = 5;            // ... the number of those shown
const BELOW = 8;                // space between lanes
const LEAST_NS = 20;            // shortest visible range

class Lanes extends Drawing {
    constructor(box, canvas) {
        super(box, canvas);
        this.pointed = this.focused = this.span = null;
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

    // Computes the positions of lanes, from the top.
    place() {
        let top = AXIS;

        this.tops = this.picture.lanes.map(lane => {
            const at = top;

            top += this.heightOf(lane);
            return at;
        });
        this.height = top;
    }

    // The height of everything above the calls of @lane.
    above(lane) {
        return lane.closed ? HEAD : HEAD + (lane.flags.length ? MARKS : 0) +
            lane.ranges.length * ROW + lane.counters.length * CURVE;
    }

    rowHeight(lane) {
        return lane.closed ? THIN : ROW;
    }

    rowCount(lane) {
        return lane.closed ? Math.min(lane.rows.length, THIN_MOST) :
            lane.rows.length;
    }

    heightOf(lane) {
        return this.above(lane) + this.rowCount(lane) * this.rowHeight(lane) +
            BELOW;
    }

    // Where @lane begins in the window.
    laneTop(lane) {
        return this.tops[lane] - this.box.scrollTop;
    }

    rowTop(lane, depth) {
        const about = this.picture.lanes[lane];

        return this.laneTop(lane) + this.above(about) +
            Math.min(depth, this.rowCount(about) - 1) * this.rowHeight(about);
    }

    // The name of the lane at the top stays in view while its calls are.
    headTop(lane) {
        const top = this.laneTop(lane);
        const last = top + this.heightOf(this.picture.lanes[lane]) - BELOW -
            HEAD;

        return Math.max(top, Math.min(AXIS, last));
    }

    // Opens lanes as long as all have room in @height; if none has, the one with
    // the most calls.
    openSome(height) {
        const { lanes } = this.picture;
        let left = height - AXIS;

        for (const lane of lanes) {
            lane.closed = true;
            left -= this.heightOf(lane);
        }
        for (const lane of lanes) {
            const least = this.heightOf(lane);

            lane.closed = false;
            const more = this.heightOf(lane) - least;

            lane.closed = more > left;
            left -= lane.closed ? 0 : more;
        }
        if (lanes.length && lanes.every(lane => lane.closed))
            lanes.reduce((most, lane) => (lane.calls > most.calls ? lane :
                most)).closed = false;
        this.place();
        this.resize();
    }

    // --- time ---

    x(time) {
        const [from, to] = this.range;

        return (time - from) * this.width / (to - from);
    }

    time(x) {
        const [from, to] = this.range;

        return from + x * (to - from) / this.width;
    }

    whole() {
        return [0, Math.max(this.picture.duration, LEAST_NS)];
    }

    isWhole() {
        const [from, to] = this.range, [first, last] = this.whole();

        return from <= first && to >= last;
    }

    // Limits a range to the recording, and to the shortest visible one.
    clip(from, to) {
        const [, all] = this.whole();
        const width = Math.min(Math.max(to - from, LEAST_NS), all);
        const begin = Math.min(Math.max((from + to - width) / 2, 0),
            all - width);

        return [begin, begin + width];
    }

    // --- what is where ---

    // The lane at @y, or -1.
    laneAt(y) {
        const { lanes } = this.picture;

        return lanes.findIndex((lane, i) => y >= this.laneTop(i) &&
            y < this.laneTop(i) + this.heightOf(lane));
    }

    // The lane whose head is at @y, or -1.
    headAt(y) {
        const lane = y < AXIS ? -1 : this.laneAt(y);
        const top = lane < 0 ? 0 : this.headTop(lane);

        return lane >= 0 && y >= top && y < top + HEAD ? lane : -1;
    }

    // The call at a point: { lane, depth, piece }, or null.
    find(x, y) {
        const lane = y < AXIS || this.headAt(y) >= 0 ? -1 : this.laneAt(y);

        if (lane < 0)
            return null;
        const about = this.picture.lanes[lane];
        const depth = Math.floor((y - this.laneTop(lane) -
            this.above(about)) / this.rowHeight(about));

        if (depth < 0 || depth >= this.rowCount(about))
            return null;
        const piece = this.near(about.rows[depth], x);

        return piece < 0 ? null : { lane, depth, piece };
    }

    // The piece at @x, or one within its pixel.
    near(row, x) {
        const piece = row.after(this.time(Math.floor(x)));

        return piece < row.count && this.x(row.begin[piece]) <= x + 1 ? piece :
            -1;
    }

    // The counter at a point and its value there, or null.
    findCounter(x, y) {
        const lane = y < AXIS || this.headAt(y) >= 0 ? -1 : this.laneAt(y);

        if (lane < 0 || this.picture.lanes[lane].closed)
            return null;
        const about = this.picture.lanes[lane];
        const counter = about.counters[Math.floor((y - this.curvesTop(lane)) /
            CURVE)];
        const point = counter ? counter.at(this.time(x)) : -1;

        return point < 0 ? null : { counter, ns: this.time(x),
            value: counter.shown[point].value };
    }

    curvesTop(lane) {
        const about = this.picture.lanes[lane];

        return this.laneTop(lane) + HEAD + (about.flags.length ? MARKS : 0) +
            about.ranges.length * ROW;
    }
}
