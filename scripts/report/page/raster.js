// Rectangles that are set as pixels.  A canvas takes thousands of rectangles too
// slowly for smooth moves; pixels take the time of their number, which is
// limited.

class Raster {
    constructor() {
        this.colors = new Map();
        const probe = document.createElement('canvas');

        probe.width = probe.height = 1;
        this.probe = probe.getContext('2d', { willReadFrequently: true });
    }

    begin(context) {
        const { width, height } = context.canvas;

        if (!this.image || this.image.width !== width ||
            this.image.height !== height) {
            this.image = context.createImageData(Math.max(width, 1),
                Math.max(height, 1));
            this.pixels = new Uint32Array(this.image.data.buffer);
        } else {
            this.pixels.fill(0);
        }
        this.context = context;
        this.scale = context.getTransform().a;
        this.isRow = false;
    }

    // Until endRow(), all rectangles have this top and height, and nothing else is
    // beside them: a line of pixels is set, and then copied.
    beginRow(top, height) {
        this.isRow = true;
        this.row = [top, height];
    }

    endRow() {
        const { width } = this.image;
        const [first, last] = this.linesOf(...this.row);

        this.isRow = false;
        for (let y = first + 1; y < last; y++)
            this.pixels.copyWithin(y * width, first * width,
                (first + 1) * width);
    }

    // The first line of pixels of what has this top and height, and the one after it.
    linesOf(top, height) {
        const { scale, image } = this;

        return [Math.max(Math.round(top * scale), 0),
            Math.min(Math.round((top + height) * scale), image.height)];
    }

    // The pixel of a CSS colour.
    pixel(color, alpha) {
        const key = alpha === 1 ? color : `${color} ${alpha}`;

        if (!this.colors.has(key)) {
            this.probe.clearRect(0, 0, 1, 1);
            this.probe.fillStyle = color;
            this.probe.fillRect(0, 0, 1, 1);
            const { data } = this.probe.getImageData(0, 0, 1, 1);

            data[3] *= alpha;
            this.colors.set(key, new Uint32Array(data.buffer)[0]);
        }
        return this.colors.get(key);
    }

    // At least a pixel wide.
    rect(left, top, width, height, color, alpha = 1) {
        const { scale, image, pixels } = this;
        const from = Math.max(Math.round(left * scale), 0);
        const to = Math.min(Math.max(Math.round((left + width) * scale),
            from + 1), image.width);
        const [first, end] = this.linesOf(top, height);
        const last = this.isRow ? Math.min(first + 1, end) : end;
        const pixel = this.pixel(color, alpha);

        for (let y = first; y < last && from < to; y++) {
            const line = y * image.width;

            if (to - from > 8)
                pixels.fill(pixel, line + from, line + to);
            else
                for (let x = from; x < to; x++)
                    pixels[line + x] = pixel;
        }
    }

    // All rectangles so far are drawn, and whatever was there is gone.
    end() {
        this.context.putImageData(this.image, 0, 0);
    }
}
