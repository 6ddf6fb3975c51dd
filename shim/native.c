/* `_native`: counts steps that are not timed, in a small part of the time that Python code takes.
 *
 * A step of TensorFlow evicts the caches, so each object that is read for the next step costs as much as ten
 * instructions. These types keep what a counted step needs in a few cache lines. Where this file cannot be loaded,
 * Python code in pacing/ordinals.py and tensorflow/ does the same.
 *
 * One build serves Python 3.7 and later: it uses the stable ABI, and the layouts below, which are checked when it
 * is loaded. All functions run under the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <stdint.h>

/* ---- layouts of Python's objects: calls of the interpreter's functions would be slower ------------------ */

typedef struct {
    PyVarObject head;
    PyObject **items;
} List;

typedef struct {
    PyObject_HEAD
    Py_ssize_t fill;
    Py_ssize_t used;
} Set;

typedef struct {
    PyObject_HEAD
    Py_ssize_t used;
} Dict;

typedef struct {
    PyObject_HEAD
    PyObject *referent; /* None if it is gone */
} Weakref;

#ifndef METH_FASTCALL /* in the stable ABI since 3.10, unchanged since 3.7 */
#define METH_FASTCALL 0x0080
#endif

/* Set an ImportError and return 0 unless this interpreter has these layouts. */
static int check_layouts(void) {
    PyObject *list = Py_BuildValue("[OO]", Py_True, Py_False);
    PyObject *set = list ? PySet_New(list) : NULL;
    PyObject *dict = Py_BuildValue("{OO}", Py_True, Py_False);
    PyObject *weakref = set ? PyWeakref_NewRef(set, NULL) : NULL;
    int is_known = list && set && dict && weakref;
    if (is_known) {
        is_known = Py_SIZE(list) == 2 && ((List *)list)->items[0] == Py_True && ((List *)list)->items[1] == Py_False &&
                   ((Set *)set)->used == 2 && PySet_Discard(set, Py_True) == 1 && ((Set *)set)->used == 1 &&
                   ((Dict *)dict)->used == 1 && PyDict_SetItem(dict, Py_None, Py_None) == 0 &&
                   ((Dict *)dict)->used == 2 && ((Weakref *)weakref)->referent == set;
        if (!is_known) PyErr_SetString(PyExc_ImportError, "the layouts of this interpreter's objects are not known");
    }
    Py_XDECREF(list);
    Py_XDECREF(set);
    Py_XDECREF(dict);
    Py_XDECREF(weakref);
    return is_known;
}

/* ---- Ordinals: the numbers of the steps of one kind ---------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    long long untimed_left; /* how many of the next steps are only counted */
    long long last;         /* the last ordinal that was taken */
    uint64_t *word;         /* shared memory for the last ordinal of a step only counted; NULL without a channel */
    PyObject *memory;       /* keeps the memory of `word` mapped */
} Ordinals;

static PyTypeObject *ordinals_type;

/* Count a step and return its ordinal, or 0 if the step is to be timed. */
static inline long long take_untimed(Ordinals *self) {
    if (self->untimed_left <= 0) return 0;
    self->untimed_left--;
    self->last++;
    if (self->word) *(volatile uint64_t *)self->word = (uint64_t)self->last;
    return self->last;
}

static PyObject *ordinals_iter(PyObject *self) {
    Py_INCREF(self);
    return self;
}

static PyObject *ordinals_iternext(PyObject *self) {
    long long ordinal = take_untimed((Ordinals *)self);
    return ordinal ? PyLong_FromLongLong(ordinal) : NULL;
}

static PyObject *ordinals_next(PyObject *self, PyObject *Py_UNUSED(unused)) {
    return PyLong_FromLongLong(++((Ordinals *)self)->last);
}

static PyObject *ordinals_skip(PyObject *self, PyObject *number) {
    long long value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) return NULL;
    ((Ordinals *)self)->untimed_left = value;
    Py_RETURN_NONE;
}

static void set_memory(Ordinals *self, uint64_t *word, PyObject *memory) {
    PyObject *old_memory = self->memory;
    self->word = word;
    self->memory = memory;
    Py_XINCREF(memory);
    Py_XDECREF(old_memory);
}

static PyObject *ordinals_bind(PyObject *self, PyObject *args) {
    PyObject *memory;
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "KO:bind", &address, &memory)) return NULL;
    set_memory((Ordinals *)self, (uint64_t *)(uintptr_t)address, memory);
    Py_RETURN_NONE;
}

static PyObject *ordinals_reset(PyObject *self, PyObject *Py_UNUSED(unused)) {
    ((Ordinals *)self)->untimed_left = ((Ordinals *)self)->last = 0;
    set_memory((Ordinals *)self, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *ordinals_left(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLongLong(((Ordinals *)self)->untimed_left);
}

static void ordinals_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Ordinals *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef ordinals_methods[] = {
    {"next", ordinals_next, METH_NOARGS, "Return the next ordinal, for a step that is timed."},
    {"skip", ordinals_skip, METH_O, "skip(number): let the next `number` steps be only counted."},
    {"bind", ordinals_bind, METH_VARARGS,
     "bind(address, memory): store the ordinal of each step that is only counted at address, within memory."},
    {"reset", ordinals_reset, METH_NOARGS, "Start again at 1, and store no ordinal until the next bind()."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef ordinals_getset[] = {
    {"left", ordinals_left, NULL, "How many of the next steps are only counted.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot ordinals_slots[] = {
    {Py_tp_doc, "The ordinals of one kind of steps; iterating takes those of steps that are only counted."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, ordinals_dealloc},
    {Py_tp_iter, ordinals_iter},
    {Py_tp_iternext, ordinals_iternext},
    {Py_tp_methods, ordinals_methods},
    {Py_tp_getset, ordinals_getset},
    {0, NULL},
};

static PyType_Spec ordinals_spec = {
    "_tfprof.shim._native.Ordinals", sizeof(Ordinals), 0, Py_TPFLAGS_DEFAULT, ordinals_slots,
};

/* ---- Hook: what the callback of a function call needs --------------------------------------------------- */

enum { INITIALIZER_NAME, BEGIN, REPORT };           /* fields of a hook of concrete functions */
enum { IS_RECORDING, INERT_ANNOTATION, ANNOTATE };  /* fields of a hook of annotations */
enum { FIELDS = 3 };

typedef struct {
    PyObject_HEAD
    Ordinals *ordinals;
    PyObject *busy_threads;  /* set */
    PyObject *pending_kinds; /* dict */
    PyObject *graphs;        /* has the attribute `stack` */
    PyObject *fields[FIELDS];
    Weakref *ordinary_function; /* to a function that is known to be no initializer, or NULL */
    struct CountedCall *spare;  /* memory for the next counted call, or NULL */
} Hook;

static PyTypeObject *hook_type;
static PyObject *stack_name, *func_graph_name, *name_name;

static void hook_dealloc(PyObject *self) {
    Hook *hook = (Hook *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)hook->ordinals);
    Py_XDECREF(hook->busy_threads);
    Py_XDECREF(hook->pending_kinds);
    Py_XDECREF(hook->graphs);
    for (int index = 0; index < FIELDS; index++) Py_XDECREF(hook->fields[index]);
    Py_XDECREF((PyObject *)hook->ordinary_function);
    PyObject_Free(hook->spare);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot hook_slots[] = {{Py_tp_dealloc, hook_dealloc}, {0, NULL}};
static PyType_Spec hook_spec = {"_tfprof.shim._native.Hook", sizeof(Hook), 0, Py_TPFLAGS_DEFAULT, hook_slots};

/* Return a new reference to an attribute. Without the attribute, return NULL without an exception. */
static PyObject *attribute(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return value;
}

/* Return whether a call that begins now is surely a step: no thread is in another step, and the calling thread
 * builds no graph. Return 0 also with an exception. */
static int is_surely_step(Hook *hook) {
    if (((Set *)hook->busy_threads)->used || ((Dict *)hook->pending_kinds)->used) return 0;
    PyObject *stack = attribute(hook->graphs, stack_name);
    if (!stack) return 0;
    int is_empty = PyList_Check(stack) && Py_SIZE(stack) == 0;
    Py_DECREF(stack);
    return is_empty;
}

/* Return `method` bound to a new hook; `args` are ordinals, busy_threads, pending_kinds, graphs and the fields. */
static PyObject *bound_to_hook(PyMethodDef *method, PyObject *args) {
    PyObject *ordinals, *busy_threads, *pending_kinds, *graphs, *fields[FIELDS];
    if (!PyArg_ParseTuple(args, "OOOOOOO", &ordinals, &busy_threads, &pending_kinds, &graphs, &fields[0], &fields[1],
                          &fields[2]))
        return NULL;
    if (!PyObject_TypeCheck(ordinals, ordinals_type) || !PyAnySet_Check(busy_threads) ||
        !PyDict_Check(pending_kinds)) {
        PyErr_SetString(PyExc_TypeError, "the arguments are Ordinals, a set, a dict and four objects");
        return NULL;
    }
    Hook *hook = (Hook *)PyType_GenericAlloc(hook_type, 0);
    if (!hook) return NULL;
    Py_INCREF(ordinals);
    hook->ordinals = (Ordinals *)ordinals;
    Py_INCREF(busy_threads);
    hook->busy_threads = busy_threads;
    Py_INCREF(pending_kinds);
    hook->pending_kinds = pending_kinds;
    Py_INCREF(graphs);
    hook->graphs = graphs;
    for (int index = 0; index < FIELDS; index++) {
        Py_INCREF(fields[index]);
        hook->fields[index] = fields[index];
    }
    PyObject *function = PyCFunction_NewEx(method, (PyObject *)hook, NULL);
    Py_DECREF((PyObject *)hook);
    return function;
}

/* ---- direct calls of concrete functions ---------------------------------------------------------------- */

/* A call that is only counted. The frame of the function keeps it, and releases it at the function's end. Then an
 * exception is set if and only if the function has failed. */
typedef struct CountedCall {
    PyObject_HEAD
    long long ordinal;
    PyObject *function;
    Hook *hook;
} CountedCall;

static PyTypeObject *counted_call_type;

/* Call the hook's `report`, and leave the exception as it is. */
static void report_failure(CountedCall *call) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *ordinal = PyLong_FromLongLong(call->ordinal);
    PyObject *report = call->hook->fields[REPORT];
    PyObject *result = ordinal ? PyObject_CallFunctionObjArgs(report, ordinal, call->function, NULL) : NULL;
    if (!result) PyErr_Clear(); /* `report` contains its errors */
    Py_XDECREF(result);
    Py_XDECREF(ordinal);
    PyErr_Restore(type, value, trace);
}

/* A CountedCall has no reference to its type, since the type is never freed. */
static void counted_call_dealloc(PyObject *self) {
    CountedCall *call = (CountedCall *)self;
    Hook *hook = call->hook;
    if (!hook) { /* made by a call of the type */
        PyObject_Free(self);
        return;
    }
    if (PyErr_Occurred()) report_failure(call);
    Py_DECREF(call->function);
    if (hook->spare)
        PyObject_Free(self);
    else
        hook->spare = call;
    Py_DECREF((PyObject *)hook);
}

static CountedCall *new_counted_call(Hook *hook, PyObject *function, long long ordinal) {
    CountedCall *call = hook->spare ? hook->spare : PyObject_Malloc(sizeof(CountedCall));
    if (!call) return NULL;
    hook->spare = NULL;
    call->ob_base.ob_refcnt = 1;
    call->ob_base.ob_type = counted_call_type;
    call->ordinal = ordinal;
    Py_INCREF(function);
    call->function = function;
    Py_INCREF((PyObject *)hook);
    call->hook = hook;
    return call;
}

static PyType_Slot counted_call_slots[] = {{Py_tp_dealloc, counted_call_dealloc}, {0, NULL}};
static PyType_Spec counted_call_spec = {
    "_tfprof.shim._native.CountedCall", sizeof(CountedCall), 0, Py_TPFLAGS_DEFAULT, counted_call_slots,
};

/* Return whether TensorFlow itself made the function, to initialize variables. A function that it did not
 * make is remembered. Return 1 with an exception. */
static int is_initializer(Hook *hook, PyObject *function) {
    if (hook->ordinary_function && hook->ordinary_function->referent == function) return 0;
    PyObject *graph = attribute(function, func_graph_name);
    PyObject *name = graph ? attribute(graph, name_name) : NULL;
    int is_equal = name && PyUnicode_Check(name) && PyUnicode_Compare(name, hook->fields[INITIALIZER_NAME]) == 0;
    Py_XDECREF(name);
    Py_XDECREF(graph);
    if (PyErr_Occurred()) return 1;
    if (!is_equal) {
        PyObject *old = (PyObject *)hook->ordinary_function;
        hook->ordinary_function = (Weakref *)PyWeakref_NewRef(function, NULL);
        if (!hook->ordinary_function) PyErr_Clear();
        Py_XDECREF(old);
    }
    return is_equal;
}

static PyObject *count_concrete_call(PyObject *self, PyObject *function) {
    Hook *hook = (Hook *)self;
    long long ordinal = 0;
    if (hook->ordinals->untimed_left > 0 && is_surely_step(hook) && !is_initializer(hook, function))
        ordinal = take_untimed(hook->ordinals);
    if (ordinal) {
        CountedCall *call = new_counted_call(hook, function, ordinal);
        if (call) return (PyObject *)call;
        Py_RETURN_NONE; /* no memory is left: if this call fails, the failure is not recorded */
    }
    return PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(hook->fields[BEGIN], function, NULL);
}

static PyMethodDef concrete_method = {"count_concrete_call", count_concrete_call, METH_O, NULL};

static PyObject *concrete_callback(PyObject *Py_UNUSED(module), PyObject *args) {
    return bound_to_hook(&concrete_method, args);
}

/* ---- TensorFlow's annotation of function calls ---------------------------------------------------------- */

/* Return whether `is_recording` returns false; 0 with an exception. */
static int is_off(PyObject *is_recording) {
    PyObject *result = PyObject_CallObject(is_recording, NULL);
    int is_true = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return is_true == 0;
}

static PyObject *annotation(PyObject *self, PyObject *args, PyObject *keywords) {
    Hook *hook = (Hook *)self;
    if (!keywords && PyTuple_Size(args) == 1 && hook->ordinals->untimed_left > 0 && is_surely_step(hook) &&
        is_off(hook->fields[IS_RECORDING]) && take_untimed(hook->ordinals)) {
        PyObject *inert = hook->fields[INERT_ANNOTATION];
        Py_INCREF(inert);
        return inert;
    }
    return PyErr_Occurred() ? NULL : PyObject_Call(hook->fields[ANNOTATE], args, keywords);
}

static PyMethodDef annotation_method = {
    "Trace", (PyCFunction)(void (*)(void))annotation, METH_VARARGS | METH_KEYWORDS, NULL,
};

static PyObject *annotation_factory(PyObject *Py_UNUSED(module), PyObject *args) {
    return bound_to_hook(&annotation_method, args);
}

/* ---- runs of sessions ----------------------------------------------------------------------------------- */

/* The key and the tracker of runs with the same fetches and targets. */
typedef struct {
    PyObject_HEAD
    PyObject *fetches, *targets; /* lists; None matches no run */
    PyObject *key, *tracker;
    Ordinals *ordinals; /* of the tracker */
    Py_ssize_t fetch_count, target_count;
    PyObject **items; /* the items of both lists, one after the other: reading them here takes fewer cache lines */
} RunSignature;

static PyTypeObject *run_signature_type;
static PyObject *run_name, *untimed_name;

/* Store the items of both lists; return -1 with an exception if that fails. */
static int store_items(RunSignature *signature, PyObject *fetches, PyObject *targets) {
    if (fetches == Py_None) {
        signature->fetch_count = -1;
        return 0;
    }
    if (!PyList_Check(fetches) || !PyList_Check(targets)) {
        PyErr_SetString(PyExc_TypeError, "fetches and targets are lists");
        return -1;
    }
    signature->fetch_count = PyList_Size(fetches);
    signature->target_count = PyList_Size(targets);
    size_t count = (size_t)(signature->fetch_count + signature->target_count);
    signature->items = PyMem_Malloc(sizeof(PyObject *) * (count + 1));
    if (!signature->items) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t index = 0; index < signature->fetch_count; index++)
        signature->items[index] = PyList_GetItem(fetches, index);
    for (Py_ssize_t index = 0; index < signature->target_count; index++)
        signature->items[signature->fetch_count + index] = PyList_GetItem(targets, index);
    return 0;
}

static int run_signature_init(PyObject *self, PyObject *args, PyObject *keywords) {
    RunSignature *signature = (RunSignature *)self;
    PyObject *fetches, *targets, *key, *tracker;
    if (keywords || signature->items || signature->ordinals) {
        PyErr_SetString(PyExc_TypeError, "RunSignature is made once, of positional arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "OOOO", &fetches, &targets, &key, &tracker) ||
        store_items(signature, fetches, targets) < 0)
        return -1;
    PyObject *ordinals = PyObject_GetAttr(tracker, untimed_name);
    if (!ordinals) return -1;
    if (!PyObject_TypeCheck(ordinals, ordinals_type)) {
        Py_DECREF(ordinals);
        PyErr_SetString(PyExc_TypeError, "the tracker's `untimed` is no Ordinals");
        return -1;
    }
    signature->ordinals = (Ordinals *)ordinals;
    signature->fetches = fetches, signature->targets = targets, signature->key = key, signature->tracker = tracker;
    Py_INCREF(fetches);
    Py_INCREF(targets);
    Py_INCREF(key);
    Py_INCREF(tracker);
    return 0;
}

static void run_signature_dealloc(PyObject *self) {
    RunSignature *signature = (RunSignature *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(signature->fetches);
    Py_XDECREF(signature->targets);
    Py_XDECREF(signature->key);
    Py_XDECREF(signature->tracker);
    Py_XDECREF((PyObject *)signature->ordinals);
    PyMem_Free(signature->items);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMemberDef run_signature_members[] = {
    {"fetches", T_OBJECT_EX, offsetof(RunSignature, fetches), READONLY, NULL},
    {"targets", T_OBJECT_EX, offsetof(RunSignature, targets), READONLY, NULL},
    {"key", T_OBJECT_EX, offsetof(RunSignature, key), READONLY, NULL},
    {"tracker", T_OBJECT_EX, offsetof(RunSignature, tracker), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot run_signature_slots[] = {
    {Py_tp_doc, "RunSignature(fetches, targets, key, tracker)"},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, run_signature_init},
    {Py_tp_dealloc, run_signature_dealloc},
    {Py_tp_members, run_signature_members},
    {0, NULL},
};

static PyType_Spec run_signature_spec = {
    "_tfprof.shim._native.RunSignature", sizeof(RunSignature), 0, Py_TPFLAGS_DEFAULT, run_signature_slots,
};

static int has_items(PyObject *list, PyObject **items, Py_ssize_t count) {
    if (!PyList_Check(list) || Py_SIZE(list) != count) return 0;
    for (Py_ssize_t index = 0; index < count; index++)
        if (((List *)list)->items[index] != items[index]) return 0;
    return 1;
}

/* Return the ordinal of a run that is only counted. Return None for a run that is to be timed, or whose fetches or
 * targets differ from those of the last run of its session. */
static PyObject *count_run(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "count_run takes a session, its fetches and its targets");
        return NULL;
    }
    PyObject *session = args[0], *fetches = args[1], *targets = args[2];
    /* not PyObject_GetAttr, which would call the `__getattr__` of a class of the job's */
    RunSignature *signature = (RunSignature *)PyObject_GenericGetAttr(session, run_name);
    if (!signature) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    long long ordinal = 0;
    if (PyObject_TypeCheck((PyObject *)signature, run_signature_type) && signature->ordinals &&
        signature->ordinals->untimed_left > 0 && has_items(fetches, signature->items, signature->fetch_count) &&
        has_items(targets, signature->items + signature->fetch_count, signature->target_count))
        ordinal = take_untimed(signature->ordinals);
    Py_DECREF((PyObject *)signature);
    if (ordinal) return PyLong_FromLongLong(ordinal);
    Py_RETURN_NONE;
}

/* ---- the module ----------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"concrete_callback", concrete_callback, METH_VARARGS,
     "concrete_callback(ordinals, busy_threads, pending_kinds, graphs, initializer_name, begin, report) -> callback\n\n"
     "The callback counts a call of a concrete function, or returns begin(function). If a counted call fails,\n"
     "report(ordinal, function) is called."},
    {"annotation_factory", annotation_factory, METH_VARARGS,
     "annotation_factory(ordinals, busy_threads, pending_kinds, graphs, is_recording, inert, annotate) -> factory\n\n"
     "The factory counts a function call and returns `inert`, or returns annotate(name, **kwargs)."},
    {"count_run", (PyCFunction)(void (*)(void))count_run, METH_FASTCALL,
     "count_run(session, fetches, targets) -> ordinal of a run that is only counted, or None"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_tfprof.shim._native",
    .m_doc = "Counts steps that are not timed.",
    .m_size = -1,
    .m_methods = functions,
};

static int add_type(PyTypeObject **type, PyType_Spec *spec) {
    if (!*type) *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type != NULL;
}

PyMODINIT_FUNC PyInit__native(void) {
    if (!check_layouts()) return NULL;
    stack_name = PyUnicode_InternFromString("stack");
    func_graph_name = PyUnicode_InternFromString("_func_graph");
    name_name = PyUnicode_InternFromString("name");
    run_name = PyUnicode_InternFromString("_tfprof_run");
    untimed_name = PyUnicode_InternFromString("untimed");
    if (!stack_name || !func_graph_name || !name_name || !run_name || !untimed_name) return NULL;
    if (!add_type(&ordinals_type, &ordinals_spec) || !add_type(&hook_type, &hook_spec) ||
        !add_type(&counted_call_type, &counted_call_spec) || !add_type(&run_signature_type, &run_signature_spec))
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    Py_INCREF((PyObject *)ordinals_type);
    Py_INCREF((PyObject *)run_signature_type);
    if (PyModule_AddObject(module, "Ordinals", (PyObject *)ordinals_type) < 0 ||
        PyModule_AddObject(module, "RunSignature", (PyObject *)run_signature_type) < 0)
        return NULL;
    return module;
}
