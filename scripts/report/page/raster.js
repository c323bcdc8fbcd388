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
        const first = Math.max(Math.round(top * scale), 0);
        const last = Math.min(Math.round((top + height) * scale),
            image.height);
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
