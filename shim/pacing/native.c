/* `_native`: counts steps that are not timed, without the cost of Python code.
 *
 * One build serves Python 3.7 and later: it uses only the stable ABI and members of its own type. Where it is not
 * loaded, every step is timed (shim/pacing/ordinals.py). All functions run under the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

/* ---- Ordinals: the numbers of the steps of one kind ---------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    long long timed_at;             /* ordinal of the next step that is timed, if no order arrives before it */
    long long counted;              /* steps that were only counted and that no span includes; negative if a span
                                       included a step that then failed and has one of its own */
    unsigned long long generation;  /* of the order that the tracker follows */
    long long last;                 /* the last ordinal that was taken */
    /* Addresses in memory that the tracker keeps mapped, or 0: */
    unsigned long long word;        /* of the last ordinal of a step that was only counted */
    unsigned long long order;       /* of the generation of the agent's last order */
} Ordinals;

static PyTypeObject *ordinals_type;

static volatile uint64_t *at(unsigned long long address) { return (volatile uint64_t *)(uintptr_t)address; }

static PyObject *ordinals_take_untimed(PyObject *self, PyObject *Py_UNUSED(unused)) {
    Ordinals *ordinals = (Ordinals *)self;
    if (ordinals->last + 1 >= ordinals->timed_at ||
        (ordinals->order && *at(ordinals->order) != ordinals->generation))
        return PyLong_FromLongLong(0);
    ordinals->counted++;
    ordinals->last++;
    if (ordinals->word) *at(ordinals->word) = (uint64_t)ordinals->last;
    return PyLong_FromLongLong(ordinals->last);
}

static PyObject *ordinals_next(PyObject *self, PyObject *Py_UNUSED(unused)) {
    return PyLong_FromLongLong(++((Ordinals *)self)->last);
}

static PyObject *ordinals_take_counted(PyObject *self, PyObject *Py_UNUSED(unused)) {
    Ordinals *ordinals = (Ordinals *)self;
    long long counted = ordinals->counted > 0 ? ordinals->counted : 0;
    ordinals->counted -= counted;
    return PyLong_FromLongLong(counted);
}

static PyMethodDef ordinals_methods[] = {
    {"take_untimed", ordinals_take_untimed, METH_NOARGS,
     "Count a step and return its ordinal; return 0 if the step is to be timed."},
    {"next", ordinals_next, METH_NOARGS, "Return the next ordinal, for a step that is timed."},
    {"take_counted", ordinals_take_counted, METH_NOARGS,
     "Return the number of steps that were only counted and that no span includes; from now on, a span does."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef ordinals_members[] = {
    {"timed_at", T_LONGLONG, offsetof(Ordinals, timed_at), 0,
     "The ordinal of the next step that is timed, if no order arrives before it."},
    {"counted", T_LONGLONG, offsetof(Ordinals, counted), 0,
     "The number of steps that were only counted and that no span includes."},
    {"generation", T_ULONGLONG, offsetof(Ordinals, generation), 0, "The generation of the order that is followed."},
    {"last", T_LONGLONG, offsetof(Ordinals, last), 0, "The last ordinal that was taken."},
    {"word", T_ULONGLONG, offsetof(Ordinals, word), 0, "Where the last ordinal of a step only counted is stored, or 0."},
    {"order", T_ULONGLONG, offsetof(Ordinals, order), 0, "Where the generation of the agent's last order is, or 0."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot ordinals_slots[] = {
    {Py_tp_doc, "The ordinals of the steps of one kind, from 1 on."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_methods, ordinals_methods},
    {Py_tp_members, ordinals_members},
    {0, NULL},
};

static PyType_Spec ordinals_spec = {
    "_native.Ordinals", sizeof(Ordinals), 0, Py_TPFLAGS_DEFAULT, ordinals_slots,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "Counts steps that are not timed.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__native(void) {
    if (!ordinals_type) ordinals_type = (PyTypeObject *)PyType_FromSpec(&ordinals_spec);
    if (!ordinals_type) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    Py_INCREF((PyObject *)ordinals_type);
    if (PyModule_AddObject(module, "Ordinals", (PyObject *)ordinals_type) < 0) return NULL;
    return module;
}
