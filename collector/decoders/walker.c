/* `_walker`, the C decoder: decodes RunMetadata into columns without protobuf (walk.h), and interns names (names.h).
 * fallback.py computes the same results. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "walk.h"

typedef struct {
    PyObject_HEAD
    name_table names;
} NamesObject;

static PyTypeObject *names_type;

static PyObject *names_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    unsigned long long seed, text_max;
    unsigned int count_max;
    if (!PyArg_ParseTuple(args, "KIK", &seed, &count_max, &text_max)) return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    NamesObject *self = (NamesObject *)alloc(type, 0);
    if (!self) return NULL;
    memset(&self->names, 0, sizeof self->names);
    self->names.seed = seed;
    self->names.count_max = count_max;
    self->names.text_max = (size_t)text_max;
    return (PyObject *)self;
}

static void names_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    names_free(&((NamesObject *)self)->names);
    freefunc free_ = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_(self);
    Py_DECREF(type);
}

static names_of_kind *kind_of(PyObject *self, unsigned int kind) {
    if (kind < KINDS) return &((NamesObject *)self)->names.kinds[kind];
    PyErr_SetString(PyExc_IndexError, "no such kind of name");
    return NULL;
}

static PyObject *names_add_method(PyObject *self, PyObject *args) {
    unsigned int kind;
    const char *text;
    Py_ssize_t size;
    uint32_t id = NO_ID;
    if (!PyArg_ParseTuple(args, "Iy#", &kind, &text, &size) || !kind_of(self, kind)) return NULL;
    byte_range s = {(const uint8_t *)text, (const uint8_t *)text + size};
    if (names_add(&((NamesObject *)self)->names, kind, s, &id) == NO_MEMORY) return PyErr_NoMemory();
    return PyLong_FromUnsignedLong(id);
}

static PyObject *names_get_method(PyObject *self, PyObject *args) {
    unsigned int kind, id;
    if (!PyArg_ParseTuple(args, "II", &kind, &id)) return NULL;
    names_of_kind *kind_names = kind_of(self, kind);
    if (!kind_names) return NULL;
    if (id >= kind_names->count) return PyErr_Format(PyExc_IndexError, "no name %u", id);
    size_t start = name_start(kind_names, id), size = kind_names->ends[id] - start;
    return PyBytes_FromStringAndSize(size ? (const char *)kind_names->text + start : "", (Py_ssize_t)size);
}

static PyObject *names_counts_method(PyObject *self, PyObject *Py_UNUSED(none)) {
    const names_of_kind *kinds = ((NamesObject *)self)->names.kinds;
    return Py_BuildValue("(IIIII)", kinds[NODE].count, kinds[DEVICE].count, kinds[LABEL].count, kinds[ALLOCATOR].count,
                         kinds[OUTPUTS].count);
}

static PyObject *names_cut_method(PyObject *self, PyObject *args) {
    unsigned int counts[KINDS];
    if (!PyArg_ParseTuple(args, "(IIIII)", &counts[NODE], &counts[DEVICE], &counts[LABEL], &counts[ALLOCATOR],
                          &counts[OUTPUTS]))
        return NULL;
    for (unsigned kind = 0; kind < KINDS; kind++) names_cut(&((NamesObject *)self)->names, kind, counts[kind]);
    Py_RETURN_NONE;
}

static PyMethodDef names_methods[] = {
    {"add", names_add_method, METH_VARARGS, "add(kind, text) -> id, 0xFFFFFFFF if the table is full"},
    {"get", names_get_method, METH_VARARGS, "get(kind, id) -> text"},
    {"counts", names_counts_method, METH_NOARGS, "counts() -> number of names of each kind"},
    {"cut", names_cut_method, METH_VARARGS, "cut(counts): keep only the first names of each kind"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot names_slots[] = {
    {Py_tp_new, names_new},
    {Py_tp_dealloc, names_dealloc},
    {Py_tp_methods, names_methods},
    {Py_tp_doc, "Names(seed, count_max, text_max): interned names of one job."},
    {0, NULL},
};

static PyType_Spec names_spec = {
    .name = "tfprof.collector.decoders._walker.Names",
    .basicsize = sizeof(NamesObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = names_slots,
};

/* Set `s` to the bytes of item `index`; if the result is true, the caller must release `view`. */
static bool borrow_bytes(PyObject *list, Py_ssize_t index, Py_buffer *view, byte_range *s) {
    PyObject *item = PySequence_GetItem(list, index);
    if (!item) return false;
    int failed = PyObject_GetBuffer(item, view, PyBUF_SIMPLE);
    Py_DECREF(item);
    if (failed) return false;
    static const uint8_t empty[1];
    const uint8_t *at = view->len ? view->buf : empty;
    *s = (byte_range){at, at + view->len};
    return true;
}

static PyObject *count_function(PyObject *Py_UNUSED(module), PyObject *messages) {
    Py_ssize_t length = PySequence_Size(messages);
    size_t count = 0;
    Py_buffer view;
    byte_range s;
    for (Py_ssize_t i = 0; i < length; i++) {
        if (!borrow_bytes(messages, i, &view, &s)) return NULL;
        count += count_nodes(s);
        PyBuffer_Release(&view);
    }
    return length < 0 ? NULL : PyLong_FromSize_t(count);
}

#define ALIGNED(size) (((size) + 63) & ~(size_t)63)

/* Point `row_columns` at the columns in `block`, each at a multiple of 64 bytes; return the size of all columns. */
static size_t lay_out_columns(columns *row_columns, uint8_t *block, size_t rows) {
    size_t at = 0;
#define PLACE(type, name)                                                                                              \
    if (block) row_columns->name = (type *)(void *)(block + at);                                                       \
    at += ALIGNED(rows * sizeof(type));
    COLUMNS(PLACE)
#undef PLACE
    return at;
}

/* Return the columns of the allocations, each as bytes. */
static PyObject *allocation_columns(const row_sink *sink) {
    PyObject *result = PyList_New(0);
#define COLUMN(type, name)                                                                                             \
    if (result) {                                                                                                      \
        PyObject *column = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(sink->allocation_count * sizeof(type)));       \
        type *values = column ? (type *)(void *)PyBytes_AsString(column) : NULL;                                       \
        for (size_t i = 0; values && i < sink->allocation_count; i++) values[i] = sink->allocations[i].name;           \
        if (!column || PyList_Append(result, column)) Py_CLEAR(result);                                                \
        Py_XDECREF(column);                                                                                            \
    }
    ALLOCATION_COLUMNS(COLUMN)
#undef COLUMN
    return result;
}

static PyObject *walk_messages(PyObject *messages, PyObject *traces, row_sink *sink) {
    Py_ssize_t length = PySequence_Size(messages);
    PyObject *results = length < 0 ? NULL : PyList_New(length);
    for (Py_ssize_t i = 0; results && i < length; i++) {
        Py_buffer view;
        byte_range s;
        PyObject *trace = PySequence_GetItem(traces, i);
        sink->trace = trace ? (uint32_t)PyLong_AsUnsignedLong(trace) : 0;
        Py_XDECREF(trace);
        if (PyErr_Occurred() || !borrow_bytes(messages, i, &view, &s)) goto fail;
        size_t row = sink->row;
        enum status status = walk_run_metadata(s, sink);
        PyBuffer_Release(&view);
        if (status == NO_MEMORY) {
            PyErr_NoMemory();
            goto fail;
        }
        if (status == NO_ROOM) { /* the names of earlier messages stay and keep their ids */
            Py_DECREF(results);
            Py_RETURN_NONE;
        }
        PyObject *result = Py_BuildValue("(nLIi)", (Py_ssize_t)(sink->row - row), (long long)sink->base,
                                         (unsigned int)sink->accelerator, (int)status);
        if (!result || PyList_SetItem(results, i, result)) goto fail;
    }
    return results;
fail:
    Py_DECREF(results);
    return NULL;
}

static PyObject *walk_function(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *messages, *traces, *table;
    Py_buffer block;
    Py_ssize_t rows;
    if (!PyArg_ParseTuple(args, "OOO!w*n", &messages, &traces, names_type, &table, &block, &rows)) return NULL;
    PyObject *results = NULL;
    columns row_columns;
    if (rows < 0 || rows > INT32_MAX || (size_t)block.len < lay_out_columns(&row_columns, NULL, (size_t)rows)) {
        PyErr_SetString(PyExc_ValueError, "the columns do not fit into the block");
    } else {
        lay_out_columns(&row_columns, block.buf, (size_t)rows);
        row_sink sink = {.columns = &row_columns, .names = &((NamesObject *)table)->names, .row_end = (size_t)rows};
        results = walk_messages(messages, traces, &sink);
        if (results && results != Py_None) {
            PyObject *allocations = allocation_columns(&sink);
            PyObject *pair = allocations ? PyTuple_Pack(2, results, allocations) : NULL;
            Py_XDECREF(allocations);
            Py_DECREF(results);
            results = pair;
        }
        free(sink.signature);
        free(sink.allocations);
    }
    PyBuffer_Release(&block);
    return results;
}

static PyObject *block_size_function(PyObject *Py_UNUSED(module), PyObject *rows) {
    size_t count = PyLong_AsSize_t(rows);
    if (PyErr_Occurred()) return NULL;
    if (count > INT32_MAX) return PyErr_Format(PyExc_ValueError, "%zu rows are too many", count);
    return PyLong_FromSize_t(lay_out_columns(NULL, NULL, count));
}

static PyMethodDef functions[] = {
    {"count", count_function, METH_O, "count(messages) -> upper bound of their rows"},
    {"block_size", block_size_function, METH_O, "block_size(rows) -> bytes of the columns of OPS"},
    {"walk", walk_function, METH_VARARGS,
     "walk(messages, traces, names, block, rows)"
     " -> ([(rows, base_ns, accelerator, status)], columns of ALLOCATIONS), None if block is too small"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tfprof.collector.decoders._walker",
    .m_doc = "Decodes RunMetadata into columns.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__walker(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    names_type = (PyTypeObject *)PyType_FromSpec(&names_spec);
    if (!names_type || PyModule_AddType(module, names_type) || PyModule_AddIntMacro(module, ROWS_MAX)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
