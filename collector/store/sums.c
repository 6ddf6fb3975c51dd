/* `_sums`: what is summed up of sorted op executions, run by run, in one pass, and rollups put together. sums.py and merging.py
 * say the same in pyarrow and are its equals. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Columns of int64, in the order of sums.INPUTS; `trace` (uint32) comes before them. */
enum { BASE, START, OP_START, OP_END, START_FIX, END_FIX, WAIT, TOTAL, PEAK, LIVE, OUTPUT, TEMP, PERSISTENT, INPUTS };

#define BUCKETS 256
#define BUCKETS_AN_OCTAVE 4.0

/* One run's sums, in the order of sums.RESULTS; sums wrap around as pyarrow's do. */
typedef struct {
    uint64_t traces, runs, sum_us, sum_ns;
    int64_t min_ns, max_ns;
    double sum_squares_ns2;
    uint64_t wait_ns, requested_bytes, peak_bytes, residual_bytes, output_bytes;
} sums;

enum { RESULTS = sizeof(sums) / 8 };

typedef struct {
    const uint32_t *trace;
    const int64_t *in[INPUTS];
} rows;

typedef struct {
    uint32_t *counts;
    size_t size, room;
} histograms;

/* Microseconds of nanoseconds, rounded down. */
static int64_t floor_us(int64_t ns) { return ns / 1000 - (ns % 1000 < 0); }

static unsigned bucket_of(int64_t ns) { return (unsigned)floor(log2((double)(ns > 1 ? ns : 1)) * BUCKETS_AN_OCTAVE); }

static int64_t wrapped(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* Add one row to its run's sums; return how long it lasted, through `counts`, whether it started at all. */
static bool add(sums *to, const rows *from, size_t row, int64_t *lasted) {
#define IN(name) (from->in[name][row])
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

/* Append the `size` counts of a run; false without memory. */
static bool append(histograms *to, const uint32_t *counts, size_t size) {
    if (to->room - to->size < size) {
        size_t room = 2 * to->room + BUCKETS;
        uint32_t *grown = realloc(to->counts, room * sizeof *grown);
        if (!grown) return false;
        to->counts = grown;
        to->room = room;
    }
    memcpy(to->counts + to->size, counts, size * sizeof *counts);
    to->size += size;
    return true;
}

static bool sum_run(sums *to, histograms *histogram, const rows *from, size_t row, size_t end) {
    uint32_t counts[BUCKETS] = {0};
    size_t used = 0;
    for (size_t first = row; row < end; row++) {
        int64_t lasted;
        to->traces += row == first || from->trace[row] != from->trace[row - 1];
        if (!add(to, from, row, &lasted)) continue;
        unsigned bucket = bucket_of(lasted);
        counts[bucket]++;
        if (used <= bucket) used = bucket + 1;
    }
    return append(histogram, counts, used);
}

/* Return (RESULTS columns end to end, where each run's histogram begins and the last ends, the histograms). */
static PyObject *sum_runs(const rows *from, const uint64_t *begins, size_t runs, size_t length) {
    PyObject *columns = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(runs * sizeof(sums)));
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((runs + 1) * sizeof(int32_t)));
    histograms histogram = {NULL, 0, 0};
    PyObject *result = NULL;
    if (!columns || !offsets) goto done;
    uint64_t *column = (uint64_t *)(void *)PyBytes_AsString(columns);
    int32_t *offset = (int32_t *)(void *)PyBytes_AsString(offsets);
    offset[0] = 0;
    for (size_t run = 0; run < runs; run++) {
        sums of_run;
        uint64_t words[RESULTS];
        memset(&of_run, 0, sizeof of_run);
        if (!sum_run(&of_run, &histogram, from, begins[run], run + 1 < runs ? begins[run + 1] : length)) {
            PyErr_NoMemory();
            goto done;
        }
        memcpy(words, &of_run, sizeof words);
        for (size_t result_ = 0; result_ < RESULTS; result_++) column[result_ * runs + run] = words[result_];
        offset[run + 1] = (int32_t)histogram.size;
    }
    const char *counts = histogram.size ? (const char *)histogram.counts : "";
    result = Py_BuildValue("(OOy#)", columns, offsets, counts, (Py_ssize_t)(histogram.size * sizeof(uint32_t)));
done:
    free(histogram.counts);
    Py_XDECREF(columns);
    Py_XDECREF(offsets);
    return result;
}

/* Whether `begins` ascend from 0 and end before `length`. */
static bool in_order(const uint64_t *begins, size_t runs, size_t length) {
    if (runs > INT32_MAX / BUCKETS || (runs ? begins[0] != 0 : length != 0)) return false;
    for (size_t run = 1; run < runs; run++)
        if (begins[run] <= begins[run - 1]) return false;
    return !runs || begins[runs - 1] < length;
}

static PyObject *by_run(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *columns, *result = NULL;
    Py_buffer trace, begins, views[INPUTS];
    if (!PyArg_ParseTuple(args, "y*y*O!", &trace, &begins, &PyTuple_Type, &columns)) return NULL;
    size_t length = (size_t)trace.len / sizeof(uint32_t), runs = (size_t)begins.len / sizeof(uint64_t);
    bool fits = PyTuple_Size(columns) == INPUTS && in_order(begins.buf, runs, length);
    rows from = {.trace = trace.buf};
    Py_ssize_t taken = 0;
    for (; fits && taken < INPUTS; taken++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(columns, taken), &views[taken], PyBUF_SIMPLE)) goto done;
        from.in[taken] = views[taken].buf;
        fits = (size_t)views[taken].len == length * sizeof(int64_t);
    }
    if (fits) {
        result = sum_runs(&from, begins.buf, runs, length);
    } else {
        PyErr_SetString(PyExc_ValueError, "the columns are not those of one table, or its runs are not in order");
    }
done:
    while (taken) PyBuffer_Release(&views[--taken]);
    PyBuffer_Release(&begins);
    PyBuffer_Release(&trace);
    return result;
}

/* One of several rollups that are put together; `group`: which row of the result each of its rows belongs to. */
typedef struct {
    size_t rows, counts_size;
    const uint32_t *group, *canonical, *counts;
    const uint64_t *columns[RESULTS];
    const int32_t *offsets; /* of each row's histogram in `counts`, and the end of the last */
} rollup;

/* The result, row by row. */
typedef struct {
    size_t rows;
    sums *sums;
    uint32_t *canonical, *counts;
    int32_t *offsets;
} merged;

enum { GROUP, CANONICAL, OFFSETS, COUNTS, OTHERS };

/* Whether the buffers of a rollup fit together. */
static bool fits(const rollup *of, const Py_buffer *views, size_t groups) {
    size_t length = of->rows;
    if ((size_t)views[CANONICAL].len != length * 4 || (size_t)views[OFFSETS].len != (length + 1) * 4) return false;
    for (size_t i = 0; i < RESULTS; i++)
        if ((size_t)views[OTHERS + i].len != length * 8) return false;
    for (size_t row = 0; row < length; row++)
        if (of->group[row] >= groups || of->offsets[row] < 0 || of->offsets[row] > of->offsets[row + 1]) return false;
    return !length || (size_t)of->offsets[length] <= of->counts_size;
}

static void add_sums(sums *to, const rollup *from, size_t row) {
    uint64_t words[RESULTS];
    sums more;
    for (size_t i = 0; i < RESULTS; i++) words[i] = from->columns[i][row];
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

/* Leave room for the longest histogram of each row: `offsets` where each begins; return false when they are too long. */
static bool lay_out(merged *to, const rollup *parts, size_t count) {
    int64_t end = 0;
    for (const rollup *part = parts; part < parts + count; part++)
        for (size_t row = 0; row < part->rows; row++) {
            int32_t size = part->offsets[row + 1] - part->offsets[row], *longest = &to->offsets[part->group[row]];
            if (size > *longest) *longest = size;
        }
    for (size_t row = 0; row < to->rows; row++) {
        int32_t size = to->offsets[row];
        to->offsets[row] = (int32_t)end;
        end += size;
        if (end > INT32_MAX) return false;
    }
    to->offsets[to->rows] = (int32_t)end;
    to->counts = calloc((size_t)end + 1, sizeof *to->counts);
    return to->counts != NULL;
}

static void add_rollup(merged *to, const rollup *from) {
    for (size_t row = 0; row < from->rows; row++) {
        uint32_t group = from->group[row];
        add_sums(&to->sums[group], from, row);
        if (to->canonical[group] == UINT32_MAX) to->canonical[group] = from->canonical[row];
        uint32_t *counts = to->counts + to->offsets[group];
        const uint32_t *more = from->counts + from->offsets[row];
        for (int32_t i = 0, size = from->offsets[row + 1] - from->offsets[row]; i < size; i++) counts[i] += more[i];
    }
}

/* Return (RESULTS columns end to end, canonical, where each row's histogram begins and the last ends, the histograms). */
static PyObject *merge_rollups(const rollup *parts, size_t count, size_t length) {
    PyObject *columns = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(length * sizeof(sums))), *result = NULL;
    merged to = {length, calloc(length + 1, sizeof(sums)), malloc((length + 1) * 4), NULL, calloc(length + 1, 4)};
    if (!columns || !to.sums || !to.canonical || !to.offsets || !lay_out(&to, parts, count)) {
        PyErr_NoMemory();
        goto done;
    }
    memset(to.canonical, 0xff, length * 4);
    for (size_t part = 0; part < count; part++) add_rollup(&to, &parts[part]);
    uint64_t *column = (uint64_t *)(void *)PyBytes_AsString(columns);
    for (size_t row = 0; row < length; row++) {
        uint64_t words[RESULTS];
        memcpy(words, &to.sums[row], sizeof words);
        for (size_t i = 0; i < RESULTS; i++) column[i * length + row] = words[i];
    }
    result = Py_BuildValue("(Oy#y#y#)", columns, (char *)to.canonical, (Py_ssize_t)(length * 4), (char *)to.offsets,
                           (Py_ssize_t)((length + 1) * 4), (char *)to.counts, (Py_ssize_t)to.offsets[length] * 4);
done:
    free(to.sums);
    free(to.canonical);
    free(to.offsets);
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
    {"by_run", by_run, METH_VARARGS, "by_run(trace, begins, columns) -> (sums, ends of histograms, histograms)"},
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
