// Live memory over time, and its peak.

const CURVE_HEIGHT = 130;

class Curve extends Drawing {
    // @on(i, event): the number of a point, or -1.
    constructor(box, canvas, on) {
        super(box, canvas);
        this.height = CURVE_HEIGHT;
        this.follow(x => this.nearest(x), () => this.picture.points.length,
            on);
    }

    // @picture: { points: [[ns, bytes]...], most, colours }
    show(picture) {
        this.picture = picture;
        this.resize();
    }

    x(ns) {
        const { points } = this.picture;
        const [first] = points[0], [last] = points[points.length - 1];

        return (ns - first) / Math.max(last - first, 1) * this.width;
    }

    y(bytes) {
        return CURVE_HEIGHT - 20 -
            bytes / Math.max(this.picture.most, 1) * (CURVE_HEIGHT - 38);
    }

    nearest(x) {
        const { points } = this.picture;
        const after = points.findIndex(([ns]) => this.x(ns) > x);

        return after < 0 ? points.length - 1 : Math.max(after - 1, 0);
    }

    draw() {
        const { context, picture } = this;
        const { points, most } = picture;

        context.fillStyle = picture.line;
        for (const part of [0, 0.5, 1])
            context.fillRect(0, Math.round(this.y(most * part)), this.width, 1);
        context.fillStyle = picture.curve;
        context.beginPath();
        context.moveTo(0, this.y(0));
        points.forEach(([ns, bytes], i) => {
            context.lineTo(this.x(ns), this.y(i ? points[i - 1][1] : 0));
            context.lineTo(this.x(ns), this.y(bytes));
        });
        context.lineTo(this.width, this.y(0));
        context.fill();
        context.fillStyle = picture.strong;
        context.beginPath();
        context.arc(Math.min(Math.max(this.x(picture.peak[0]), 3),
            this.width - 3), this.y(picture.peak[1]), 3, 0, 7);
        context.fill();
        this.drawScale();
        if (this.pointed >= 0) {
            context.fillStyle = picture.strong;
            context.fillRect(this.x(points[this.pointed][0]) - 0.5, 0, 1,
                this.y(0));
        }
    }

    drawScale() {
        const { context, picture } = this;
        const { points, most } = picture;
        const texts = [0.5, 1].map(part => [humanBytes(most * part), 4,
            this.y(most * part) - 8]);
        const [first] = points[0], [last] = points[points.length - 1];
        const ends = [first, last].map(ns => timeText(ns,
            Math.max((last - first) / 100, 1)));

        texts.push([ends[0], 4, CURVE_HEIGHT - 9], [ends[1], this.width -
            this.widthOf(ends[1]) - 4, CURVE_HEIGHT - 9]);
        context.fillStyle = picture.muted;
        for (const [text, x, y] of texts)
            context.fillText(text, x, y);
    }
}

let curve;

function showMemory() {
    const points = profile.memory_points || [];

    if (points.length < 2)
        return;
    const most = points.reduce((a, [, bytes]) => Math.max(a, bytes),
        profile.memory_peak);
    const pointText = ([ns, bytes]) => `${humanBytes(bytes)} at ${
        timeText(ns, 1000)}`;

    byId('memory').hidden = false;
    byId('memory-facts').textContent = 'live blocks of the program; peak ' +
        `${humanBytes(profile.memory_peak)} at ${
            timeText(profile.memory_peak_ns, 1000)}`;
    curve = new Curve(byId('memory-box'), byId('curve'), (i, event) => {
        byId('point').textContent = i < 0 ? '' : pointText(points[i]);
        placeTip(event, event && [element('strong', pointText(points[i]))]);
    });
    curve.points = points;
    curve.most = most;
    drawMemory();
}

function drawMemory() {
    if (curve)
        curve.show({ points: curve.points, most: curve.most,
            peak: [profile.memory_peak_ns, profile.memory_peak],
            font: `12px ${css('--font')}`, line: css('--line'),
            curve: css('--curve'), muted: css('--text'),
            strong: css('--accent') });
}
