/* `_sums`: what is summed up of sorted op executions, run by run, in one pass. sums.py says the same in pyarrow and is its equal. */
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

static PyMethodDef functions[] = {
    {"by_run", by_run, METH_VARARGS, "by_run(trace, begins, columns) -> (sums, ends of histograms, histograms)"},
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
