// Levels of detail of a row of pieces.  Time is cut into equal bins; for each bin
// there is the piece that takes most of it.  Each level has half of the bins of
// the one below it, so there is always one whose bins are one to two pixels wide,
// however many pieces there are.  Bins do not move with the window: a row that is
// dragged does not flicker.

const BINS_MOST = 2 ** 20;
const BINS_LEAST = 64;

class Levels {
    constructor(row) {
        const last = row.count - 1;
        let bins = BINS_LEAST;

        while (bins < row.count && bins < BINS_MOST)
            bins *= 2;
        this.begin = row.begin[0];
        this.bin_ns = Math.max((row.end[last] - this.begin) / bins, 1e-3);
        this.winners = [this.first(row, bins)];
        while (this.winners[this.winners.length - 1].length > BINS_LEAST)
            this.halve(row);
    }

    // The time that @piece has in bin @bin of @ns.
    static share(row, piece, begin, ns, bin) {
        return Math.min(row.end[piece], begin + (bin + 1) * ns) -
            Math.max(row.begin[piece], begin + bin * ns);
    }

    first(row, bins) {
        const winners = new Int32Array(bins).fill(-1);
        const { begin, bin_ns: ns } = this;
        const binOf = time => Math.min(Math.floor((time - begin) / ns),
            bins - 1);

        for (let piece = 0; piece < row.count; piece++) {
            const last = binOf(row.end[piece]);

            for (let bin = binOf(row.begin[piece]); bin <= last; bin++)
                if (winners[bin] < 0 ||
                    Levels.share(row, piece, begin, ns, bin) >
                    Levels.share(row, winners[bin], begin, ns, bin))
                    winners[bin] = piece;
        }
        return winners;
    }

    halve(row) {
        const below = this.winners[this.winners.length - 1];
        const winners = new Int32Array(below.length / 2);
        const ns = this.bin_ns * 2 ** this.winners.length;

        for (let bin = 0; bin < winners.length; bin++) {
            const a = below[2 * bin], b = below[2 * bin + 1];

            winners[bin] = a < 0 || (b >= 0 &&
                Levels.share(row, b, this.begin, ns, bin) >
                Levels.share(row, a, this.begin, ns, bin)) ? b : a;
        }
        this.winners.push(winners);
    }

    // Calls take(piece, from, to) for the bins in [@from, @to) that have one, on
    // the finest level whose bins are at least @least_ns long.  The result is
    // false if there is no such level: its pieces are few.
    visit(from, to, least_ns, take) {
        const level = Math.ceil(Math.log2(least_ns / this.bin_ns) - 1e-9);

        if (level < 0)
            return false;
        const winners = this.winners[Math.min(level, this.winners.length - 1)];
        const ns = this.bin_ns * 2 ** Math.min(level, this.winners.length - 1);
        const first = Math.max(Math.floor((from - this.begin) / ns), 0);
        const last = Math.min(Math.ceil((to - this.begin) / ns),
            winners.length);

        for (let bin = first; bin < last; bin++)
            if (winners[bin] >= 0)
                take(winners[bin], this.begin + bin * ns,
                    this.begin + (bin + 1) * ns);
        return true;
    }
}
