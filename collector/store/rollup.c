/* `_rollup`: aggregates sorted op executions in one pass (rollup.h), and finds canonical devices.
 * rollup.py computes the same results with pyarrow. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rollup.h"

/* Return (node, device, canonical, RESULTS columns); the latter are concatenated. */
static PyObject *columns_of(const table *of) {
    size_t size = of->size;
    PyObject *ids[3] = {NULL}, *words = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(sums)));
    PyObject *result = NULL;
    for (int i = 0; i < 3; i++) ids[i] = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(uint32_t)));
    if (words && ids[0] && ids[1] && ids[2]) {
        uint32_t *node = (uint32_t *)(void *)PyBytes_AsString(ids[0]);
        uint32_t *device = (uint32_t *)(void *)PyBytes_AsString(ids[1]);
        uint32_t *canonical = (uint32_t *)(void *)PyBytes_AsString(ids[2]);
        uint64_t *word = (uint64_t *)(void *)PyBytes_AsString(words);
        for (size_t i = 0; i < size; i++) {
            const row *from = &of->rows[i];
            uint64_t values[RESULTS];
            memcpy(values, &from->sums, sizeof values);
            for (size_t column = 0; column < RESULTS; column++) word[column * size + i] = values[column];
            node[i] = from->node;
            device[i] = from->device;
            canonical[i] = from->canonical;
        }
        result = Py_BuildValue("(OOOO)", ids[0], ids[1], ids[2], words);
    }
    for (int i = 0; i < 3; i++) Py_XDECREF(ids[i]);
    Py_XDECREF(words);
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
        whole = at > 0;
    }
    PyObject *result = whole ? columns_of(&made) : PyErr_NoMemory();
    free(made.rows);
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

static PyMethodDef functions[] = {
    {"canonical", canonical_function, METH_VARARGS,
     "canonical(node, device, known, flags) -> canonical device by node id"},
    {"rollup", rollup_function, METH_VARARGS,
     "rollup(node, device, trace, columns, canonical, flags) -> (node, device, canonical, sums)"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tfprof.collector.store._rollup",
    .m_doc = "Aggregates of op executions.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__rollup(void) { return PyModule_Create(&definition); }
