/* `_rollup`: aggregates sorted op executions in one pass (rollup.h), and finds canonical devices.
 * rollup.py computes the same results with pyarrow. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rollup.h"

/* Return (node, device, canonical, sums); `sums` concatenates the RESULTS columns. */
static PyObject *columns_of(const table *rollup) {
    size_t size = rollup->size;
    PyObject *ids[3] = {NULL}, *words = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(sums)));
    PyObject *result = NULL;
    for (int i = 0; i < 3; i++) ids[i] = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * sizeof(uint32_t)));
    if (words && ids[0] && ids[1] && ids[2]) {
        uint32_t *node = (uint32_t *)(void *)PyBytes_AsString(ids[0]);
        uint32_t *device = (uint32_t *)(void *)PyBytes_AsString(ids[1]);
        uint32_t *canonical = (uint32_t *)(void *)PyBytes_AsString(ids[2]);
        uint64_t *word = (uint64_t *)(void *)PyBytes_AsString(words);
        for (size_t i = 0; i < size; i++) {
            const row *entry = &rollup->rows[i];
            uint64_t values[RESULTS];
            memcpy(values, &entry->sums, sizeof values);
            for (size_t column = 0; column < RESULTS; column++) word[column * size + i] = values[column];
            node[i] = entry->node;
            device[i] = entry->device;
            canonical[i] = entry->canonical;
        }
        result = Py_BuildValue("(OOOO)", ids[0], ids[1], ids[2], words);
    }
    for (int i = 0; i < 3; i++) Py_XDECREF(ids[i]);
    Py_XDECREF(words);
    return result;
}

static PyObject *roll_up(const ops *executions, const device_facts *facts) {
    for (size_t i = 0; i < executions->length; i++)
        if (executions->node[i] >= facts->nodes)
            return PyErr_Format(PyExc_ValueError, "the columns lack the canonical device of node %u",
                                executions->node[i]);
    table rollup = {.rows = NULL};
    size_t index = 0;
    bool ok = true;
    while (ok && index < executions->length) {
        index = add_node(&rollup, executions, facts, index);
        ok = index > 0;
    }
    PyObject *result = ok ? columns_of(&rollup) : PyErr_NoMemory();
    free(rollup.rows);
    free(rollup.seen);
    free(rollup.merge_buffer);
    return result;
}

static PyObject *rollup_function(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *columns, *result = NULL;
    Py_buffer node, device, trace, canonical, flags, views[INPUTS];
    if (!PyArg_ParseTuple(args, "y*y*y*O!y*y*", &node, &device, &trace, &PyTuple_Type, &columns, &canonical, &flags))
        return NULL;
    ops executions = {(size_t)node.len / 4, node.buf, device.buf, trace.buf, {NULL}};
    device_facts facts = {canonical.buf, (size_t)canonical.len / 4, flags.buf, (size_t)flags.len};
    bool ok = device.len == node.len && trace.len == node.len && PyTuple_Size(columns) == INPUTS;
    Py_ssize_t view_count = 0;
    for (; ok && view_count < INPUTS; view_count++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(columns, view_count), &views[view_count], PyBUF_SIMPLE)) goto done;
        executions.in[view_count] = views[view_count].buf;
        ok = (size_t)views[view_count].len == executions.length * sizeof(int64_t);
    }
    if (ok) {
        result = roll_up(&executions, &facts);
    } else {
        PyErr_SetString(PyExc_ValueError, "the columns are not those of one table");
    }
done:
    while (view_count) PyBuffer_Release(&views[--view_count]);
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
    Py_buffer node, device, known, flags;
    if (!PyArg_ParseTuple(args, "y*y*y*y*", &node, &device, &known, &flags)) return NULL;
    device_facts facts = {known.buf, (size_t)known.len / 4, flags.buf, (size_t)flags.len};
    const uint32_t *nodes = node.buf, *devices = device.buf;
    size_t length = (size_t)node.len / 4, size = facts.nodes;
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
        if (facts.nodes) memcpy(canonical, facts.canonical, facts.nodes * 4);
        for (size_t i = 0; i < length; i++)
            if (canonical[nodes[i]] == NONE_ID && can_be_canonical(&facts, devices[i]))
                canonical[nodes[i]] = devices[i];
    }
    PyBuffer_Release(&flags);
    PyBuffer_Release(&known);
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
