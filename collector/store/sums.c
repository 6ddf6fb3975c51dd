/* `_sums`: what is summed up of sorted op executions in one pass, and rollups put together. rollup.py and merging.py say the same
 * in pyarrow and are its equals. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE_ID UINT32_MAX

/* Columns of int64, in the order of sums.INPUTS; `base` comes before them. */
enum { BASE, START, OP_START, OP_END, START_FIX, END_FIX, WAIT, TOTAL, PEAK, LIVE, OUTPUT, TEMP, PERSISTENT, INPUTS };

#define BUCKETS 256
#define BUCKETS_AN_OCTAVE 4.0

/* One row's sums, in the order of sums.RESULTS; sums wrap around as pyarrow's do. */
typedef struct {
    uint64_t traces, runs, sum_us, sum_ns;
    int64_t min_ns, max_ns;
    double sum_squares_ns2;
    uint64_t wait_ns, requested_bytes, peak_bytes, residual_bytes, output_bytes;
    int64_t first_bucket;
} sums;

enum { RESULTS = sizeof(sums) / 8 };

/* Op executions, sorted by node, device and trace. */
typedef struct {
    size_t length;
    const uint32_t *node, *device, *trace;
    const int64_t *in[INPUTS];
} ops;

/* What is known of nodes and devices: the canonical device of each node, and whether a device can be one. */
typedef struct {
    const uint32_t *canonical;
    size_t nodes;
    const uint8_t *flags;
    size_t devices;
} known;

/* A row of ROLLUP; its histogram ends at `end` among all counts. */
typedef struct {
    uint32_t node, device, canonical;
    sums sums;
    size_t end;
} row;

typedef struct {
    row *rows;
    size_t size, room;
    uint32_t *counts;
    size_t counts_size, counts_room;
    uint32_t *seen, *more; /* traces of a node, and room to put more together with them */
    size_t seen_size, seen_room;
} table;

/* Make room for `more` elements after `size`. */
static bool grow(void *pointer, size_t *room, size_t size, size_t more, size_t each) {
    void *at;
    memcpy(&at, pointer, sizeof at);
    if (*room - size >= more) return true;
    size_t wanted = 2 * (size + more);
    at = realloc(at, wanted * each);
    if (!at) return false;
    memcpy(pointer, &at, sizeof at);
    *room = wanted;
    return true;
}

/* Microseconds of nanoseconds, rounded down. */
static int64_t floor_us(int64_t ns) { return ns / 1000 - (ns % 1000 < 0); }

static unsigned bucket_of(int64_t ns) { return (unsigned)floor(log2((double)(ns > 1 ? ns : 1)) * BUCKETS_AN_OCTAVE); }

static int64_t wrapped(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* Add one execution to the sums of its run; return whether it started at all, and through `lasted` how long it took. */
static bool add(sums *to, const ops *from, size_t at, int64_t *lasted) {
#define IN(name) (from->in[name][at])
    int64_t start = wrapped(IN(BASE), IN(START)), start_us = floor_us(start);
    if (wrapped(start_us, IN(START_FIX)) <= 0) return false;
    int64_t ns = wrapped(IN(OP_START), IN(OP_END));
    uint64_t us = (uint64_t)floor_us(wrapped(start, ns)) - (uint64_t)start_us + (uint64_t)IN(END_FIX);
    uint64_t kept = (uint64_t)IN(PERSISTENT) + (uint64_t)IN(TEMP);
    if (!to->runs || ns < to->min_ns) to->min_ns = ns;
    if (!to->runs || ns > to->max_ns) to->max_ns = ns;
    to->runs++;
    to->sum_us += us ? us : 1;
    to->sum_ns += (uint64_t)ns;
    to->sum_squares_ns2 += (double)ns * (double)ns;
    to->wait_ns += (uint64_t)IN(WAIT);
    to->requested_bytes += (uint64_t)IN(TOTAL) + kept;
    to->peak_bytes += (uint64_t)IN(PEAK) + kept;
    to->residual_bytes += (uint64_t)IN(LIVE) + (uint64_t)IN(PERSISTENT);
    to->output_bytes += (uint64_t)IN(OUTPUT);
#undef IN
    *lasted = ns;
    return true;
}

/* Append a row of the executions `at` to `end`, of one node on one device. */
static bool add_run(table *to, const ops *from, size_t at, size_t end) {
    if (!grow(&to->rows, &to->room, to->size, 1, sizeof *to->rows)) return false;
    if (!grow(&to->counts, &to->counts_room, to->counts_size, BUCKETS, sizeof *to->counts)) return false;
    row *made = &to->rows[to->size++];
    memset(made, 0, sizeof *made);
    made->node = from->node[at];
    made->device = from->device[at];
    made->canonical = NONE_ID;
    uint32_t counts[BUCKETS] = {0};
    unsigned first = BUCKETS, last = 0;
    for (size_t i = at; i < end; i++) {
        int64_t lasted;
        made->sums.traces += i == at || from->trace[i] != from->trace[i - 1];
        if (!add(&made->sums, from, i, &lasted)) continue;
        unsigned bucket = bucket_of(lasted);
        counts[bucket]++;
        if (bucket < first) first = bucket;
        if (bucket > last) last = bucket;
    }
    if (first < BUCKETS) {
        made->sums.first_bucket = first;
        memcpy(to->counts + to->counts_size, counts + first, (last - first + 1) * sizeof *counts);
        to->counts_size += last - first + 1;
    }
    made->end = to->counts_size;
    return true;
}

/* Put the traces of a run among those of its node that were seen, each once; both ascend. */
static bool see_traces(table *to, const ops *from, size_t at, size_t end) {
    size_t room = to->seen_room, old = 0, size = 0;
    if (!grow(&to->seen, &room, to->seen_size, end - at, sizeof *to->seen)) return false;
    if (!grow(&to->more, &to->seen_room, to->seen_size, end - at, sizeof *to->more)) return false;
    while (at < end || old < to->seen_size) {
        bool mine = old == to->seen_size || (at < end && from->trace[at] < to->seen[old]);
        uint32_t trace = mine ? from->trace[at++] : to->seen[old++];
        if (!size || to->more[size - 1] != trace) to->more[size++] = trace;
    }
    uint32_t *seen = to->seen;
    to->seen = to->more;
    to->more = seen;
    to->seen_size = size;
    return true;
}

static bool can_be_canonical(const known *of, uint32_t device) { return device < of->devices && of->flags[device]; }

/* Append the rows of the node whose executions begin at `at`: one a device, and its own; return where they end, 0 without memory. */
static size_t add_node(table *to, const ops *from, const known *of, size_t at) {
    uint32_t node = from->node[at], canonical = of->canonical[node];
    bool looked_at = false;
    to->seen_size = 0;
    while (at < from->length && from->node[at] == node) {
        size_t end = at + 1;
        uint32_t device = from->device[at];
        while (end < from->length && from->node[end] == node && from->device[end] == device) end++;
        if (!add_run(to, from, at, end)) return 0;
        if (device == canonical || !can_be_canonical(of, device)) {
            if (!see_traces(to, from, at, end)) return 0;
            looked_at = true;
        }
        at = end;
    }
    if (looked_at) {
        if (!grow(&to->rows, &to->room, to->size, 1, sizeof *to->rows)) return 0;
        row *made = &to->rows[to->size++];
        memset(made, 0, sizeof *made);
        *made = (row){.node = node, .device = NONE_ID, .canonical = canonical, .end = to->counts_size};
        made->sums.traces = to->seen_size;
    }
    return at;
}

/* Return (node, device, canonical, RESULTS columns end to end, where each histogram begins and the last ends, the histograms). */
static PyObject *columns_of(const table *of) {
    size_t size = of->size;
    PyObject *ids[3] = {NULL}, *words = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(sums)));
    PyObject *ends = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size + 1) * sizeof(int32_t))), *result = NULL;
    for (int i = 0; i < 3; i++) ids[i] = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(uint32_t)));
    if (words && ends && ids[0] && ids[1] && ids[2]) {
        uint32_t *node = (uint32_t *)(void *)PyBytes_AsString(ids[0]), *device = (uint32_t *)(void *)PyBytes_AsString(ids[1]);
        uint32_t *canonical = (uint32_t *)(void *)PyBytes_AsString(ids[2]);
        uint64_t *word = (uint64_t *)(void *)PyBytes_AsString(words);
        int32_t *end = (int32_t *)(void *)PyBytes_AsString(ends);
        end[0] = 0;
        for (size_t i = 0; i < size; i++) {
            const row *from = &of->rows[i];
            uint64_t values[RESULTS];
            memcpy(values, &from->sums, sizeof values);
            for (size_t column = 0; column < RESULTS; column++) word[column * size + i] = values[column];
            node[i] = from->node;
            device[i] = from->device;
            canonical[i] = from->canonical;
            end[i + 1] = (int32_t)from->end;
        }
        const char *counts = of->counts_size ? (const char *)of->counts : "";
        result = Py_BuildValue("(OOOOOy#)", ids[0], ids[1], ids[2], words, ends, counts, (Py_ssize_t)(of->counts_size * 4));
    }
    for (int i = 0; i < 3; i++) Py_XDECREF(ids[i]);
    Py_XDECREF(words);
    Py_XDECREF(ends);
    return result;
}

static PyObject *roll_up(const ops *from, const known *of) {
    for (size_t i = 0; i < from->length; i++)
        if (from->node[i] >= of->nodes) return PyErr_Format(PyExc_ValueError, "the columns do not know node %u", from->node[i]);
    table made = {.rows = NULL};
    size_t at = 0;
    bool whole = true;
    while (whole && at < from->length) {
        at = add_node(&made, from, of, at);
        whole = at && made.counts_size <= INT32_MAX;
    }
    PyObject *result = whole ? columns_of(&made) : PyErr_NoMemory();
    free(made.rows);
    free(made.counts);
    free(made.seen);
    free(made.more);
    return result;
}

static PyObject *rollup_function(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *columns, *result = NULL;
    Py_buffer node, device, trace, canonical, flags, views[INPUTS];
    if (!PyArg_ParseTuple(args, "y*y*y*O!y*y*", &node, &device, &trace, &PyTuple_Type, &columns, &canonical, &flags)) return NULL;
    ops from = {(size_t)node.len / 4, node.buf, device.buf, trace.buf, {NULL}};
    known of = {canonical.buf, (size_t)canonical.len / 4, flags.buf, (size_t)flags.len};
    bool whole = device.len == node.len && trace.len == node.len && PyTuple_Size(columns) == INPUTS;
    Py_ssize_t taken = 0;
    for (; whole && taken < INPUTS; taken++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(columns, taken), &views[taken], PyBUF_SIMPLE)) goto done;
        from.in[taken] = views[taken].buf;
        whole = (size_t)views[taken].len == from.length * sizeof(int64_t);
    }
    if (whole) {
        result = roll_up(&from, &of);
    } else {
        PyErr_SetString(PyExc_ValueError, "the columns are not those of one table");
    }
done:
    while (taken) PyBuffer_Release(&views[--taken]);
    PyBuffer_Release(&flags);
    PyBuffer_Release(&canonical);
    PyBuffer_Release(&trace);
    PyBuffer_Release(&device);
    PyBuffer_Release(&node);
    return result;
}

/* canonical(node, device, known, flags): the first device of each node, in order of arrival, that can be one. */
static PyObject *canonical_function(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer node, device, before, flags;
    if (!PyArg_ParseTuple(args, "y*y*y*y*", &node, &device, &before, &flags)) return NULL;
    known of = {before.buf, (size_t)before.len / 4, flags.buf, (size_t)flags.len};
    const uint32_t *nodes = node.buf, *devices = device.buf;
    size_t length = (size_t)node.len / 4, size = of.nodes;
    PyObject *result = NULL;
    if (device.len != node.len) {
        PyErr_SetString(PyExc_ValueError, "the columns are not those of one table");
    } else {
        for (size_t i = 0; i < length; i++)
            if (nodes[i] >= size) size = (size_t)nodes[i] + 1;
        result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * 4));
    }
    if (result) {
        uint32_t *canonical = (uint32_t *)(void *)PyBytes_AsString(result);
        memset(canonical, 0xff, size * 4);
        if (of.nodes) memcpy(canonical, of.canonical, of.nodes * 4);
        for (size_t i = 0; i < length; i++)
            if (canonical[nodes[i]] == NONE_ID && can_be_canonical(&of, devices[i])) canonical[nodes[i]] = devices[i];
    }
    PyBuffer_Release(&flags);
    PyBuffer_Release(&before);
    PyBuffer_Release(&device);
    PyBuffer_Release(&node);
    return result;
}

/* One of several rollups that are put together; `group`: which at of the result each of its rows belongs to. */
typedef struct {
    size_t rows, counts_size;
    const uint32_t *group, *canonical, *counts;
    const uint64_t *columns[RESULTS];
    const int32_t *offsets; /* of each row's histogram in `counts`, and the end of the last */
} rollup;

/* The result, at by at. */
typedef struct {
    size_t rows;
    sums *sums;
    uint32_t *canonical, *counts;
    int32_t *offsets;
    int64_t *ends; /* the bucket after the last of each histogram */
} merged;

enum { GROUP, CANONICAL, OFFSETS, COUNTS, OTHERS };
enum { FIRST_BUCKET = offsetof(sums, first_bucket) / 8 };

/* Whether the buffers of a rollup fit together. */
static bool fits(const rollup *of, const Py_buffer *views, size_t groups) {
    size_t length = of->rows;
    if ((size_t)views[CANONICAL].len != length * 4 || (size_t)views[OFFSETS].len != (length + 1) * 4) return false;
    for (size_t i = 0; i < RESULTS; i++)
        if ((size_t)views[OTHERS + i].len != length * 8) return false;
    for (size_t at = 0; at < length; at++)
        if (of->group[at] >= groups || of->offsets[at] < 0 || of->offsets[at] > of->offsets[at + 1] ||
            of->columns[FIRST_BUCKET][at] > BUCKETS)
            return false;
    return !length || (size_t)of->offsets[length] <= of->counts_size;
}

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

/* The first bucket of a at's histogram, and through `size` how many there are; false where there is none. */
static bool histogram_of(const rollup *part, size_t at, int64_t *first, int64_t *size) {
    memcpy(first, &part->columns[FIRST_BUCKET][at], sizeof *first);
    *size = part->offsets[at + 1] - part->offsets[at];
    return *size > 0;
}

/* Leave room for all buckets of each at: `offsets` where they begin. False when they are too many, or there is no memory. */
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

/* Return (RESULTS columns end to end, canonical, where each row's histogram begins and the last ends, the histograms). */
static PyObject *merge_rollups(const rollup *parts, size_t count, size_t length) {
    PyObject *columns = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(length * sizeof(sums))), *result = NULL;
    merged to = {length, calloc(length + 1, sizeof(sums)), malloc((length + 1) * 4), NULL, calloc(length + 1, 4),
                 calloc(length + 1, 8)};
    if (!columns || !to.sums || !to.canonical || !to.offsets || !to.ends || !lay_out(&to, parts, count)) {
        PyErr_NoMemory();
        goto done;
    }
    memset(to.canonical, 0xff, length * 4);
    for (size_t part = 0; part < count; part++) add_rollup(&to, &parts[part]);
    uint64_t *column = (uint64_t *)(void *)PyBytes_AsString(columns);
    for (size_t at = 0; at < length; at++) {
        uint64_t words[RESULTS];
        memcpy(words, &to.sums[at], sizeof words);
        for (size_t i = 0; i < RESULTS; i++) column[i * length + at] = words[i];
    }
    result = Py_BuildValue("(Oy#y#y#)", columns, (char *)to.canonical, (Py_ssize_t)(length * 4), (char *)to.offsets,
                           (Py_ssize_t)((length + 1) * 4), (char *)to.counts, (Py_ssize_t)to.offsets[length] * 4);
done:
    free(to.sums);
    free(to.canonical);
    free(to.offsets);
    free(to.ends);
    free(to.counts);
    Py_XDECREF(columns);
    return result;
}

/* Look at the buffers of a rollup: those of OTHERS, then RESULTS columns. Return how many are held; fewer than all: an error. */
static Py_ssize_t open_rollup(PyObject *buffers, rollup *to, Py_buffer *views, size_t groups) {
    Py_ssize_t taken = 0;
    if (!PyTuple_Check(buffers) || PyTuple_Size(buffers) != OTHERS + RESULTS) {
        PyErr_SetString(PyExc_ValueError, "a rollup has other columns");
        return 0;
    }
    for (; taken < OTHERS + RESULTS; taken++)
        if (PyObject_GetBuffer(PyTuple_GetItem(buffers, taken), &views[taken], PyBUF_SIMPLE)) return taken;
    *to = (rollup){.rows = (size_t)views[GROUP].len / 4, .counts_size = (size_t)views[COUNTS].len / 4,
                   .group = views[GROUP].buf, .canonical = views[CANONICAL].buf, .counts = views[COUNTS].buf,
                   .offsets = views[OFFSETS].buf};
    for (size_t i = 0; i < RESULTS; i++) to->columns[i] = views[OTHERS + i].buf;
    if (fits(to, views, groups)) return taken;
    PyErr_SetString(PyExc_ValueError, "the columns are not those of one rollup");
    PyBuffer_Release(&views[--taken]);
    return taken;
}

static PyObject *merge(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *list, *result = NULL;
    Py_ssize_t groups;
    if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &list, &groups)) return NULL;
    if (groups < 0 || groups > INT32_MAX) return PyErr_Format(PyExc_ValueError, "%zd rows are out of range", groups);
    Py_ssize_t count = PyList_Size(list), held = 0;
    rollup *parts = calloc((size_t)count + 1, sizeof *parts);
    Py_buffer(*views)[OTHERS + RESULTS] = calloc((size_t)count + 1, sizeof *views);
    if (!parts || !views) {
        PyErr_NoMemory();
        goto done;
    }
    for (; held < count; held++) {
        Py_ssize_t taken = open_rollup(PyList_GetItem(list, held), &parts[held], views[held], (size_t)groups);
        if (taken == OTHERS + RESULTS) continue;
        while (taken) PyBuffer_Release(&views[held][--taken]);
        goto done;
    }
    result = merge_rollups(parts, (size_t)count, (size_t)groups);
done:
    while (held--)
        for (size_t i = 0; i < OTHERS + RESULTS; i++) PyBuffer_Release(&views[held][i]);
    free(views);
    free(parts);
    return result;
}

static PyMethodDef functions[] = {
    {"canonical", canonical_function, METH_VARARGS, "canonical(node, device, known, flags) -> known, with what the rows add"},
    {"rollup", rollup_function, METH_VARARGS, "rollup(node, device, trace, columns, canonical, flags) -> (node, device, canonical, sums, ends of histograms, histograms)"},
    {"merge", merge, METH_VARARGS, "merge(rollups, rows) -> (sums, canonical, ends of histograms, histograms)"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tfprof.collector.store._sums",
    .m_doc = "Sums of op executions.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__sums(void) { return PyModule_Create(&definition); }
