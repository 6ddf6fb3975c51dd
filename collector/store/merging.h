/* Merges rollups. */
#ifndef TFPROF_MERGING_H
#define TFPROF_MERGING_H

#include <stddef.h>

#include "rollup.h"

enum { FIRST_BUCKET = offsetof(sums, first_bucket) / 8 };

/* One of the rollups to merge; `group`: for each of its rows, the row of the result. */
typedef struct {
    size_t rows, counts_size;
    const uint32_t *group, *canonical, *counts;
    const uint64_t *columns[RESULTS];
    const int32_t *offsets; /* of each row's histogram in `counts`, and the end of the last histogram */
} rollup;

/* The result, by row. */
typedef struct {
    size_t rows;
    sums *sums;
    uint32_t *canonical, *counts;
    int32_t *offsets;
    int64_t *ends; /* the bucket after the last bucket of each histogram */
} merged;

static void add_sums(sums *to, const rollup *from, size_t at) {
    uint64_t words[RESULTS];
    sums more;
    for (size_t i = 0; i < RESULTS; i++) words[i] = from->columns[i][at];
    memcpy(&more, words, sizeof more);
    bool ran = (int64_t)to->runs > 0;
    if ((int64_t)more.runs > 0) {
        if (!ran || more.min_ns < to->min_ns) to->min_ns = more.min_ns;
        if (!ran || more.max_ns > to->max_ns) to->max_ns = more.max_ns;
    } else if (!ran) {
        to->min_ns = to->max_ns = 0;
    }
    to->traces += more.traces;
    to->runs += more.runs;
    to->sum_us += more.sum_us;
    to->sum_ns += more.sum_ns;
    to->sum_squares_ns2 += more.sum_squares_ns2;
    to->wait_ns += more.wait_ns;
    to->requested_bytes += more.requested_bytes;
    to->peak_bytes += more.peak_bytes;
    to->residual_bytes += more.residual_bytes;
    to->output_bytes += more.output_bytes;
}

/* Set `first` to the first bucket of a row's histogram and `size` to the number of its buckets.
 * Return false if it is empty. */
static bool histogram_of(const rollup *part, size_t at, int64_t *first, int64_t *size) {
    memcpy(first, &part->columns[FIRST_BUCKET][at], sizeof *first);
    *size = part->offsets[at + 1] - part->offsets[at];
    return *size > 0;
}

/* Set the offsets and allocate the histograms of the result. Return false if they are too large, or
 * if memory is exhausted. */
static bool lay_out(merged *to, const rollup *parts, size_t count) {
    int64_t first, size, end = 0;
    for (const rollup *part = parts; part < parts + count; part++)
        for (size_t at = 0; at < part->rows; at++) {
            if (!histogram_of(part, at, &first, &size)) continue;
            sums *sums_ = &to->sums[part->group[at]];
            int64_t *last = &to->ends[part->group[at]];
            if (!*last || first < sums_->first_bucket) sums_->first_bucket = first;
            if (first + size > *last) *last = first + size;
        }
    for (size_t at = 0; at < to->rows; at++) {
        to->offsets[at] = (int32_t)end;
        end += to->ends[at] - to->sums[at].first_bucket;
        if (end > INT32_MAX) return false;
    }
    to->offsets[to->rows] = (int32_t)end;
    to->counts = calloc((size_t)end + 1, sizeof *to->counts);
    return to->counts != NULL;
}

static void add_rollup(merged *to, const rollup *from) {
    for (size_t at = 0; at < from->rows; at++) {
        uint32_t group = from->group[at];
        add_sums(&to->sums[group], from, at);
        if (to->canonical[group] == NONE_ID) to->canonical[group] = from->canonical[at];
        int64_t first, size;
        if (!histogram_of(from, at, &first, &size)) continue;
        uint32_t *counts = to->counts + to->offsets[group] + (first - to->sums[group].first_bucket);
        const uint32_t *more = from->counts + from->offsets[at];
        for (int64_t i = 0; i < size; i++) counts[i] += more[i];
    }
}

#endif
