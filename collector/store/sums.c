/* `_sums`: aggregates sorted op executions in one pass (rollup.h), and merges rollups (merging.h).
 * rollup.py and merging.py compute the same results with pyarrow. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "merging.h"

/* Return (node, device, canonical, RESULTS columns, offsets of the histograms, histograms). The
 * columns and the histograms are concatenated. The last offset is the end of the last histogram. */
static PyObject *columns_of(const table *of) {
    size_t size = of->size;
    PyObject *ids[3] = {NULL}, *words = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(sums)));
    PyObject *ends = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size + 1) * sizeof(int32_t))), *result = NULL;
    for (int i = 0; i < 3; i++) ids[i] = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(uint32_t)));
    if (words && ends && ids[0] && ids[1] && ids[2]) {
        uint32_t *node = (uint32_t *)(void *)PyBytes_AsString(ids[0]);
        uint32_t *device = (uint32_t *)(void *)PyBytes_AsString(ids[1]);
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
        Py_ssize_t counts_bytes = (Py_ssize_t)(of->counts_size * 4);
        result = Py_BuildValue("(OOOOOy#)", ids[0], ids[1], ids[2], words, ends, counts, counts_bytes);
    }
    for (int i = 0; i < 3; i++) Py_XDECREF(ids[i]);
    Py_XDECREF(words);
    Py_XDECREF(ends);
    return result;
}

static PyObject *roll_up(const ops *from, const known *of) {
    for (size_t i = 0; i < from->length; i++)
        if (from->node[i] >= of->nodes)
            return PyErr_Format(PyExc_ValueError, "the columns lack the canonical device of node %u", from->node[i]);
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
    if (!PyArg_ParseTuple(args, "y*y*y*O!y*y*", &node, &device, &trace, &PyTuple_Type, &columns, &canonical, &flags))
        return NULL;
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

/* canonical(node, device, known, flags): the first device of each node, in order of arrival, that
 * can be canonical. A node that has a canonical device in `known` keeps it. */
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

enum { GROUP, CANONICAL, OFFSETS, COUNTS, OTHERS };

/* Whether the buffers of a rollup have consistent sizes and values. */
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

/* Return (RESULTS columns, canonical, offsets of the histograms, histograms); the columns and the
 * histograms are concatenated, and the last offset is the end of the last histogram. */
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

/* Acquire the buffers of a rollup: those of OTHERS, then the RESULTS columns. Return the number of
 * acquired buffers; if it is not the number of all, a Python error is set. */
static Py_ssize_t open_rollup(PyObject *buffers, rollup *to, Py_buffer *views, size_t groups) {
    Py_ssize_t taken = 0;
    if (!PyTuple_Check(buffers) || PyTuple_Size(buffers) != OTHERS + RESULTS) {
        PyErr_SetString(PyExc_ValueError, "a rollup has another number of columns");
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
    {"canonical", canonical_function, METH_VARARGS, 
     "canonical(node, device, known, flags) -> canonical device by node id"},
    {"rollup", rollup_function, METH_VARARGS,
     "rollup(node, device, trace, columns, canonical, flags)"
     " -> (node, device, canonical, sums, offsets of histograms, histograms)"},
    {"merge", merge, METH_VARARGS, "merge(rollups, rows) -> (sums, canonical, offsets of histograms, histograms)"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tfprof.collector.store._sums",
    .m_doc = "Aggregates of op executions.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__sums(void) { return PyModule_Create(&definition); }
