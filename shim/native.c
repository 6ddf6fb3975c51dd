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
#include <time.h>

/* ---- layouts of Python's objects: calls of the interpreter's functions would be slower ------------------ */

typedef struct {
    PyVarObject head;
    PyObject **items;
} List;

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
    PyObject *weakref = set ? PyWeakref_NewRef(set, NULL) : NULL;
    int is_known = list && set && weakref;
    if (is_known) {
        is_known = Py_SIZE(list) == 2 && ((List *)list)->items[0] == Py_True && ((List *)list)->items[1] == Py_False &&
                   ((Weakref *)weakref)->referent == set;
        if (!is_known) PyErr_SetString(PyExc_ImportError, "the layouts of this interpreter's objects are not known");
    }
    Py_XDECREF(list);
    Py_XDECREF(set);
    Py_XDECREF(weakref);
    return is_known;
}

/* ---- Ordinals: the numbers of the steps of one kind ---------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    long long untimed_left; /* how many of the next steps are only counted, before the next check for orders */
    long long later;        /* how many more are only counted if there is no new order */
    long long interval;     /* steps from one check to the next */
    long long last;         /* the last ordinal that was taken */
    uint64_t *word;         /* shared memory for the last ordinal of a step only counted; NULL without a channel */
    uint64_t *order;        /* shared memory with the generation of the agent's last order; NULL without a channel */
    uint64_t generation;    /* of the order that the tracker follows */
    PyObject *memory;       /* keeps the memory of `word` and `order` mapped */
} Ordinals;

static PyTypeObject *ordinals_type;

/* Begin the steps before the next check for orders. */
static void begin_interval(Ordinals *self) {
    self->untimed_left = self->later < self->interval ? self->later : self->interval;
    self->later -= self->untimed_left;
}

/* Return whether the next step is only counted. */
static inline int has_untimed(Ordinals *self) {
    if (self->untimed_left <= 0 && self->later > 0 && self->order &&
        *(volatile uint64_t *)self->order == self->generation)
        begin_interval(self);
    return self->untimed_left > 0;
}

/* Count a step and return its ordinal, or 0 if the step is to be timed. */
static inline long long take_untimed(Ordinals *self) {
    if (!has_untimed(self)) return 0;
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

static PyObject *ordinals_skip(PyObject *self, PyObject *args) {
    Ordinals *ordinals = (Ordinals *)self;
    long long number, interval;
    if (!PyArg_ParseTuple(args, "LL:skip", &number, &interval)) return NULL;
    ordinals->later = number > 0 ? number : 0;
    ordinals->interval = interval > 0 ? interval : 1;
    begin_interval(ordinals);
    Py_RETURN_NONE;
}

static PyObject *ordinals_follow(PyObject *self, PyObject *generation) {
    Ordinals *ordinals = (Ordinals *)self;
    unsigned long long value = PyLong_AsUnsignedLongLong(generation);
    if (PyErr_Occurred()) return NULL;
    long long later = ordinals->later;
    ordinals->generation = value;
    ordinals->later = 0;
    return PyLong_FromLongLong(later);
}

static void set_memory(Ordinals *self, uint64_t *word, uint64_t *order, PyObject *memory) {
    PyObject *old_memory = self->memory;
    self->word = word;
    self->order = order;
    self->memory = memory;
    Py_XINCREF(memory);
    Py_XDECREF(old_memory);
}

static PyObject *ordinals_bind(PyObject *self, PyObject *args) {
    PyObject *memory;
    unsigned long long word, order;
    if (!PyArg_ParseTuple(args, "KKO:bind", &word, &order, &memory)) return NULL;
    set_memory((Ordinals *)self, (uint64_t *)(uintptr_t)word, (uint64_t *)(uintptr_t)order, memory);
    Py_RETURN_NONE;
}

static PyObject *ordinals_reset(PyObject *self, PyObject *Py_UNUSED(unused)) {
    Ordinals *ordinals = (Ordinals *)self;
    ordinals->untimed_left = ordinals->later = ordinals->last = 0;
    ordinals->generation = 0;
    set_memory(ordinals, NULL, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *ordinals_left(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLongLong(((Ordinals *)self)->untimed_left);
}

static PyObject *ordinals_later(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLongLong(((Ordinals *)self)->later);
}

static void ordinals_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Ordinals *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef ordinals_methods[] = {
    {"next", ordinals_next, METH_NOARGS, "Return the next ordinal, for a step that is timed."},
    {"skip", ordinals_skip, METH_VARARGS,
     "skip(number, interval): let the next `number` steps be only counted. Check for orders every `interval` steps."},
    {"follow", ordinals_follow, METH_O,
     "follow(generation) -> number: follow an order. Cancel `number` steps that were to be only counted later."},
    {"bind", ordinals_bind, METH_VARARGS,
     "bind(address, order_address, memory): store the ordinal of each step that is only counted at address, and find\n"
     "the generation of the agent's last order at order_address, both within memory."},
    {"reset", ordinals_reset, METH_NOARGS, "Start again at 1, and store no ordinal until the next bind()."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef ordinals_getset[] = {
    {"left", ordinals_left, NULL, "How many of the next steps are only counted, before a check for orders.", NULL},
    {"later", ordinals_later, NULL, "How many more steps are only counted if there is no new order.", NULL},
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

/* ---- the state of a thread ------------------------------------------------------------------------------ */

/* The base class of the state of a thread. */
typedef struct {
    PyObject_HEAD
    char is_busy, are_gradients_applied, is_applying;
    int pending_kind;         /* span kind of the next outermost call, or 0 */
    PyObject *graphs;         /* object with the graphs that TensorFlow builds; NULL until it is used */
    PyObject *graph_stack;    /* its attribute `stack`, a list of this thread's graphs */
    PyObject *keras_calls;    /* list */
    PyObject *outermost_call; /* weak reference */
    PyObject *tape_step;      /* the current training step, or None */
    PyObject *counted_step;   /* the last step that was only counted, to be used again, or None */
    PyObject *counted_batch;  /* the same for single batches of Keras; NULL until it is used */
    PyObject *optimizer_history;
} ThreadFields;

static PyTypeObject *thread_fields_type;
static PyObject *thread_state_name;
/* The calling thread's state, borrowed from the thread's dict, and the object whose attribute it is. NULL until it is
 * looked up. */
static __thread ThreadFields *current_thread;
static __thread PyObject *current_local;
static int is_python_37; /* where the deallocator of a class written in Python drops the reference to the class */

/* Free an instance of `base` or of a class written in Python, whose memory may have another header. */
static void free_instance(PyObject *self, PyTypeObject *base) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    if (type == base || !is_python_37) Py_DECREF(type);
}

static int thread_fields_traverse(PyObject *self, visitproc visit, void *arg) {
    ThreadFields *state = (ThreadFields *)self;
    Py_VISIT(state->keras_calls);
    Py_VISIT(state->outermost_call);
    Py_VISIT(state->tape_step);
    Py_VISIT(state->counted_step);
    Py_VISIT(state->counted_batch);
    Py_VISIT(state->optimizer_history);
    Py_VISIT(state->graphs);
    Py_VISIT(state->graph_stack);
    return 0;
}

static int thread_fields_clear(PyObject *self) {
    ThreadFields *state = (ThreadFields *)self;
    Py_CLEAR(state->keras_calls);
    Py_CLEAR(state->outermost_call);
    Py_CLEAR(state->tape_step);
    Py_CLEAR(state->counted_step);
    Py_CLEAR(state->counted_batch);
    Py_CLEAR(state->optimizer_history);
    Py_CLEAR(state->graphs);
    Py_CLEAR(state->graph_stack);
    return 0;
}

static void thread_fields_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    if (current_thread == (ThreadFields *)self) current_thread = NULL;
    thread_fields_clear(self);
    free_instance(self, thread_fields_type);
}

static PyMemberDef thread_fields_members[] = {
    {"keras_calls", T_OBJECT_EX, offsetof(ThreadFields, keras_calls), 0, NULL},
    {"outermost_call", T_OBJECT_EX, offsetof(ThreadFields, outermost_call), 0, NULL},
    {"tape_step", T_OBJECT, offsetof(ThreadFields, tape_step), 0, NULL},
    {"counted_step", T_OBJECT, offsetof(ThreadFields, counted_step), 0, NULL},
    {"optimizer_history", T_OBJECT_EX, offsetof(ThreadFields, optimizer_history), 0, NULL},
    {"is_busy", T_BOOL, offsetof(ThreadFields, is_busy), 0, NULL},
    {"pending_kind", T_INT, offsetof(ThreadFields, pending_kind), 0, NULL},
    {"are_gradients_applied", T_BOOL, offsetof(ThreadFields, are_gradients_applied), 0, NULL},
    {"is_applying", T_BOOL, offsetof(ThreadFields, is_applying), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot thread_fields_slots[] = {
    {Py_tp_doc, "The fields of the state of a thread."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, thread_fields_dealloc},
    {Py_tp_traverse, thread_fields_traverse},
    {Py_tp_clear, thread_fields_clear},
    {Py_tp_members, thread_fields_members},
    {0, NULL},
};

static PyType_Spec thread_fields_spec = {
    "_tfprof.shim._native.ThreadFields", sizeof(ThreadFields), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, thread_fields_slots,
};

/* ---- Hook: the objects that a callback reads ------------------------------------------------------------ */

enum { INITIALIZER_NAME, BEGIN };                  /* fields of a hook of concrete functions */
enum { IS_RECORDING, INERT_ANNOTATION, ANNOTATE }; /* fields of a hook of annotations */
/* fields of a hook of batches that are session runs */
enum { BATCH_TRACKER, BATCH_CLASS, BATCH_NO_CALL, MODEL_IDS, BEGIN_BATCH };
/* fields of a hook of gradient tapes */
enum { TRACKER, STEP_CLASS, NO_CALL, TAPE_ENTERED, TAPE_LEFT, GRADIENT_CALLED };
enum { FIELDS = 6 };
enum { BATCH_KINDS = 3 }; /* kinds of batches that are function calls */

typedef struct {
    PyObject_HEAD
    Ordinals *ordinals;
    PyObject *graphs; /* has the attribute `stack`, which depends on the thread */
    PyObject *local;  /* has the attribute `thread_state`, which depends on the thread */
    PyObject *fields[FIELDS];
    Weakref *ordinary_function; /* to a function that is known to be no initializer, or NULL */
    struct {
        int kind;
        Ordinals *ordinals;
        PyObject *annotation; /* of calls that are only counted */
    } batches[BATCH_KINDS];
} Hook;

static PyTypeObject *hook_type;
static PyObject *stack_name, *func_graph_name, *name_name;

static void hook_dealloc(PyObject *self) {
    Hook *hook = (Hook *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)hook->ordinals);
    Py_XDECREF(hook->graphs);
    Py_XDECREF(hook->local);
    for (int index = 0; index < FIELDS; index++) Py_XDECREF(hook->fields[index]);
    Py_XDECREF((PyObject *)hook->ordinary_function);
    for (int index = 0; index < BATCH_KINDS; index++) {
        Py_XDECREF((PyObject *)hook->batches[index].ordinals);
        Py_XDECREF(hook->batches[index].annotation);
    }
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

/* Return the calling thread's state, a borrowed reference; NULL with an exception. */
static ThreadFields *thread_state(PyObject *local) {
    if (current_thread && current_local == local) return current_thread;
    PyObject *state = PyObject_GetAttr(local, thread_state_name);
    if (!state) return NULL;
    Py_DECREF(state); /* the thread's dict keeps it */
    if (!PyObject_TypeCheck(state, thread_fields_type)) {
        PyErr_SetString(PyExc_TypeError, "the state of a thread is no ThreadFields");
        return NULL;
    }
    current_local = local;
    return current_thread = (ThreadFields *)state;
}

/* Let a field refer to an object. Nothing is written if it does so already. */
static void set_reference(PyObject **field, PyObject *value) {
    PyObject *old = *field;
    if (old == value) return;
    Py_INCREF(value);
    *field = value;
    Py_XDECREF(old);
}

/* Return whether a thread, the calling one, builds no graph; 0 also with an exception.
 *
 * TensorFlow may replace the list by another. Then nothing else refers to the old one. */
static int is_without_graph(Hook *hook, ThreadFields *state) {
    if (state->graphs != hook->graphs || Py_REFCNT(state->graph_stack) == 1) {
        PyObject *stack = attribute(hook->graphs, stack_name);
        if (!stack) return 0;
        set_reference(&state->graph_stack, stack);
        Py_DECREF(stack);
        set_reference(&state->graphs, hook->graphs);
    }
    return PyList_Check(state->graph_stack) && Py_SIZE(state->graph_stack) == 0;
}

/* Return the calling thread's state, a borrowed reference, if a call that begins now is surely a step: the thread is in
 * no other step and builds no graph. Otherwise return NULL, perhaps with an exception. */
static ThreadFields *state_for_step(Hook *hook) {
    ThreadFields *state = thread_state(hook->local);
    return state && !state->is_busy && is_without_graph(hook, state) ? state : NULL;
}

/* Return a new hook; `args` are ordinals, graphs, local and the fields. */
static Hook *new_hook(PyObject *args) {
    PyObject *ordinals, *graphs, *local, *fields[FIELDS] = {NULL};
    if (!PyArg_ParseTuple(args, "OOO|OOOOOO", &ordinals, &graphs, &local, &fields[0], &fields[1], &fields[2],
                          &fields[3], &fields[4], &fields[5]))
        return NULL;
    if (!PyObject_TypeCheck(ordinals, ordinals_type)) {
        PyErr_SetString(PyExc_TypeError, "the first argument is no Ordinals");
        return NULL;
    }
    Hook *hook = (Hook *)PyType_GenericAlloc(hook_type, 0);
    if (!hook) return NULL;
    Py_INCREF(ordinals);
    hook->ordinals = (Ordinals *)ordinals;
    Py_INCREF(graphs);
    hook->graphs = graphs;
    Py_INCREF(local);
    hook->local = local;
    for (int index = 0; index < FIELDS; index++) {
        Py_XINCREF(fields[index]);
        hook->fields[index] = fields[index];
    }
    return hook;
}

/* Return `method` bound to a new hook. */
static PyObject *bound_to_hook(PyMethodDef *method, PyObject *args) {
    Hook *hook = new_hook(args);
    if (!hook) return NULL;
    PyObject *function = PyCFunction_NewEx(method, (PyObject *)hook, NULL);
    Py_DECREF((PyObject *)hook);
    return function;
}

/* ---- direct calls of concrete functions ---------------------------------------------------------------- */

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
    ThreadFields *state = has_untimed(hook->ordinals) ? state_for_step(hook) : NULL;
    if (state && !state->pending_kind && !is_initializer(hook, function) && take_untimed(hook->ordinals))
        Py_RETURN_NONE;
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

/* Count a call if it is only counted, and return the annotation of its kind, a new reference. Otherwise return NULL,
 * perhaps with an exception. */
static PyObject *count_call(Hook *hook) {
    ThreadFields *state = state_for_step(hook);
    if (!state) return NULL;
    Ordinals *ordinals = hook->ordinals;
    PyObject *annotation = hook->fields[INERT_ANNOTATION];
    if (state->pending_kind) {
        int index = 0;
        while (index < BATCH_KINDS && hook->batches[index].kind != state->pending_kind) index++;
        if (index == BATCH_KINDS) return NULL;
        ordinals = hook->batches[index].ordinals;
        annotation = hook->batches[index].annotation;
    }
    if (!has_untimed(ordinals) || !is_off(hook->fields[IS_RECORDING]) || !take_untimed(ordinals)) return NULL;
    state->pending_kind = 0;
    Py_INCREF(annotation);
    return annotation;
}

static PyObject *annotate(PyObject *self, PyObject *args, PyObject *keywords) {
    Hook *hook = (Hook *)self;
    PyObject *annotation = !keywords && PyTuple_Size(args) == 1 ? count_call(hook) : NULL;
    if (annotation) return annotation;
    return PyErr_Occurred() ? NULL : PyObject_Call(hook->fields[ANNOTATE], args, keywords);
}

static PyMethodDef annotation_method = {
    "Trace", (PyCFunction)(void (*)(void))annotate, METH_VARARGS | METH_KEYWORDS, NULL,
};

static PyObject *annotation_factory(PyObject *Py_UNUSED(module), PyObject *args) {
    return bound_to_hook(&annotation_method, args);
}

/* Let the factory count calls of one more kind. */
static PyObject *add_annotation(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *factory, *ordinals, *annotation;
    int kind;
    if (!PyArg_ParseTuple(args, "OiOO", &factory, &kind, &ordinals, &annotation)) return NULL;
    PyObject *self = PyCFunction_Check(factory) ? PyCFunction_GetSelf(factory) : NULL;
    if (!self || Py_TYPE(self) != hook_type || !PyObject_TypeCheck(ordinals, ordinals_type)) {
        PyErr_SetString(PyExc_TypeError, "the arguments are a factory, a kind, Ordinals and an annotation");
        return NULL;
    }
    Hook *hook = (Hook *)self;
    int index = 0;
    while (index < BATCH_KINDS && hook->batches[index].kind) index++;
    if (index == BATCH_KINDS) {
        PyErr_SetString(PyExc_ValueError, "the factory has annotations of all kinds");
        return NULL;
    }
    Py_INCREF(ordinals);
    Py_INCREF(annotation);
    hook->batches[index].ordinals = (Ordinals *)ordinals;
    hook->batches[index].annotation = annotation;
    hook->batches[index].kind = kind;
    Py_RETURN_NONE;
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
static PyObject *run_name, *untimed_name, *ordinals_name;

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

/* Return an attribute of the object itself, or of its class. Without it, return NULL without an exception. Unlike
 * `attribute`, this never calls a `__getattr__` of the job's. */
static PyObject *own_attribute(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GenericGetAttr(object, name);
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return value;
}

/* Return Py_False if the step was counted, else Py_True; NULL with an exception. */
static PyObject *needs_python(int is_counted) {
    if (!is_counted && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(!is_counted);
}

/* Count a run that has no options and the signature of its session's last run; any other run needs Python. */
static PyObject *run_needs_python(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "run_needs_python takes a session, options, feeds, fetches and targets");
        return NULL;
    }
    PyObject *session = args[0], *options = args[1], *fetches = args[3], *targets = args[4];
    if (options != Py_None) Py_RETURN_TRUE;
    RunSignature *signature = (RunSignature *)own_attribute(session, run_name);
    if (!signature) return needs_python(0);
    int is_counted = PyObject_TypeCheck((PyObject *)signature, run_signature_type) && signature->ordinals &&
                     has_untimed(signature->ordinals) &&
                     has_items(fetches, signature->items, signature->fetch_count) &&
                     has_items(targets, signature->items + signature->fetch_count, signature->target_count) &&
                     take_untimed(signature->ordinals);
    Py_DECREF((PyObject *)signature);
    return needs_python(is_counted);
}

/* ---- calls of callables --------------------------------------------------------------------------------- */

static PyObject *call_needs_python(PyObject *Py_UNUSED(module), PyObject *callable) {
    PyObject *ordinals = own_attribute(callable, ordinals_name);
    if (!ordinals) return needs_python(0);
    int is_counted = PyObject_TypeCheck(ordinals, ordinals_type) && take_untimed((Ordinals *)ordinals);
    Py_DECREF(ordinals);
    return needs_python(is_counted);
}

/* ---- steps that are only counted ------------------------------------------------------------------------ */

/* The base class of training steps and batches that are only counted. A thread uses an object again for its next step,
 * unless something else refers to it. */
typedef struct {
    PyObject_HEAD
    PyObject *tracker;   /* None in a forked child, where the step does not count */
    PyObject *reference; /* weak reference to this step */
    long long ordinal;
    PyObject *tape; /* weak reference to the tape of a training step */
    char is_recording;
    char has_run; /* whether a run of a batch is recorded */
    long long start;
} CountedFields;

static PyTypeObject *counted_fields_type;

static void counted_fields_dealloc(PyObject *self) {
    CountedFields *step = (CountedFields *)self;
    Py_CLEAR(step->tracker);
    Py_CLEAR(step->reference);
    Py_CLEAR(step->tape);
    free_instance(self, counted_fields_type);
}

static PyMemberDef counted_fields_members[] = {
    {"tracker", T_OBJECT, offsetof(CountedFields, tracker), 0, NULL},
    {"reference", T_OBJECT_EX, offsetof(CountedFields, reference), 0, NULL},
    {"ordinal", T_LONGLONG, offsetof(CountedFields, ordinal), 0, NULL},
    {"tape", T_OBJECT_EX, offsetof(CountedFields, tape), 0, NULL},
    {"is_recording", T_BOOL, offsetof(CountedFields, is_recording), 0, NULL},
    {"has_run", T_BOOL, offsetof(CountedFields, has_run), 0, NULL},
    {"start", T_LONGLONG, offsetof(CountedFields, start), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot counted_fields_slots[] = {
    {Py_tp_doc, "The fields of a training step or batch that is only counted."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, counted_fields_dealloc},
    {Py_tp_members, counted_fields_members},
    {0, NULL},
};

static PyType_Spec counted_fields_spec = {
    "_tfprof.shim._native.CountedFields", sizeof(CountedFields), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    counted_fields_slots,
};

static int is_counted_class(PyObject *value) {
    return value && PyType_Check(value) && PyType_IsSubtype((PyTypeObject *)value, counted_fields_type);
}

/* Return the object that a weak reference refers to, None if it is gone; a borrowed reference. */
static PyObject *referent(PyObject *reference) {
    return reference ? ((Weakref *)reference)->referent : NULL;
}

static int is_without_keras_calls(ThreadFields *state) {
    return state->keras_calls && PyList_Check(state->keras_calls) && Py_SIZE(state->keras_calls) == 0;
}

/* Make a step with an ordinal the outermost call of a thread. */
static void begin_counted(ThreadFields *state, CountedFields *step, PyObject *tracker, long long ordinal) {
    set_reference(&step->tracker, tracker);
    step->ordinal = ordinal;
    set_reference(&state->outermost_call, step->reference);
    state->is_busy = 1;
}

/* Let other steps begin in a thread. `no_call` is a dead weak reference. */
static void end_call(ThreadFields *state, PyObject *no_call) {
    set_reference(&state->outermost_call, no_call);
    state->is_busy = !is_without_keras_calls(state);
}

/* ---- training steps of eager ops ------------------------------------------------------------------------ */

static int is_counted_step(Hook *hook, PyObject *step) {
    return step && Py_TYPE(step) == (PyTypeObject *)hook->fields[STEP_CLASS];
}

/* Return the thread's counted step if it can be used for a tape that is entered now. Nothing but the state may
 * refer to it, and no other step may be running. */
static CountedFields *reusable_step(Hook *hook, ThreadFields *state) {
    PyObject *step = state->counted_step;
    if (!is_counted_step(hook, step) || !is_without_keras_calls(state)) return NULL;
    PyObject *previous = state->tape_step ? state->tape_step : Py_None, *call = referent(state->outermost_call);
    if (call != Py_None && call != previous) return NULL;
    if (previous == Py_None) return Py_REFCNT(step) == 1 ? (CountedFields *)step : NULL;
    int is_unused = previous == step && !((CountedFields *)step)->is_recording && Py_REFCNT(step) == 2;
    return is_unused ? (CountedFields *)step : NULL;
}

/* Make a step the thread's current one. `tape` is a weak reference. */
static void begin_step(Hook *hook, ThreadFields *state, CountedFields *step, long long ordinal, PyObject *tape) {
    step->is_recording = 1;
    set_reference(&step->tape, tape);
    if (state->tape_step == (PyObject *)step) state->are_gradients_applied = 0; /* no optimizer ended the last step */
    set_reference(&state->tape_step, (PyObject *)step);
    begin_counted(state, step, hook->fields[TRACKER], ordinal);
}

static PyObject *count_tape_entry(PyObject *self, PyObject *tape) {
    Hook *hook = (Hook *)self;
    ThreadFields *state = thread_state(hook->local);
    if (!state) return NULL;
    if (has_untimed(hook->ordinals) && !state->pending_kind && is_without_graph(hook, state)) {
        PyObject *reference = PyWeakref_NewRef(tape, NULL);
        /* No code of the job's, such as a finalizer, can run from here on. */
        CountedFields *step = reference ? reusable_step(hook, state) : NULL;
        long long ordinal = step ? take_untimed(hook->ordinals) : 0;
        if (ordinal) {
            begin_step(hook, state, step, ordinal, reference);
            Py_DECREF(reference); /* the step keeps it */
            Py_RETURN_NONE;
        }
        Py_XDECREF(reference);
    }
    return PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(hook->fields[TAPE_ENTERED], tape, NULL);
}

static PyObject *count_tape_exit(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Hook *hook = (Hook *)self;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "the callback takes a tape and the type of its exception");
        return NULL;
    }
    ThreadFields *state = thread_state(hook->local);
    if (!state) return NULL;
    PyObject *step = state->tape_step;
    if (!is_counted_step(hook, step) || args[1] != Py_None || referent(((CountedFields *)step)->tape) != args[0])
        return PyObject_CallFunctionObjArgs(hook->fields[TAPE_LEFT], args[0], args[1], NULL);
    ((CountedFields *)step)->is_recording = 0;
    if (!state->are_gradients_applied && referent(state->outermost_call) == step)
        end_call(state, hook->fields[NO_CALL]);
    Py_RETURN_NONE;
}

static PyObject *count_gradient(PyObject *self, PyObject *tape) {
    Hook *hook = (Hook *)self;
    ThreadFields *state = thread_state(hook->local);
    if (!state) return NULL;
    if (!state->tape_step || state->tape_step == Py_None || is_counted_step(hook, state->tape_step)) Py_RETURN_NONE;
    return PyObject_CallFunctionObjArgs(hook->fields[GRADIENT_CALLED], tape, NULL);
}

static PyMethodDef tape_methods[] = {
    {"count_tape_entry", count_tape_entry, METH_O, NULL},
    {"count_tape_exit", (PyCFunction)(void (*)(void))count_tape_exit, METH_FASTCALL, NULL},
    {"count_gradient", count_gradient, METH_O, NULL},
};

static PyObject *tape_callbacks(PyObject *Py_UNUSED(module), PyObject *args) {
    Hook *hook = new_hook(args);
    if (!hook) return NULL;
    PyObject *callbacks = NULL;
    if (!hook->fields[GRADIENT_CALLED] || !is_counted_class(hook->fields[STEP_CLASS]))
        PyErr_SetString(PyExc_TypeError, "the class is no subclass of CountedFields, or arguments are missing");
    else
        callbacks = Py_BuildValue("NNN", PyCFunction_NewEx(&tape_methods[0], (PyObject *)hook, NULL),
                                  PyCFunction_NewEx(&tape_methods[1], (PyObject *)hook, NULL),
                                  PyCFunction_NewEx(&tape_methods[2], (PyObject *)hook, NULL));
    Py_DECREF((PyObject *)hook);
    return callbacks;
}

/* ---- single batches of Keras ---------------------------------------------------------------------------- */

static int is_idle(ThreadFields *state) {
    return !state->is_busy || (referent(state->outermost_call) == Py_None && is_without_keras_calls(state));
}

/* While it exists, the next call of a thread has a given kind. */
typedef struct {
    PyObject_HEAD
    ThreadFields *thread_state;
    int previous_kind;
} PendingKind;

static PyTypeObject *pending_kind_type;

static void pending_kind_dealloc(PyObject *self) {
    PendingKind *pending = (PendingKind *)self;
    PyTypeObject *type = Py_TYPE(self);
    pending->thread_state->pending_kind = pending->previous_kind;
    Py_DECREF((PyObject *)pending->thread_state);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot pending_kind_slots[] = {{Py_tp_dealloc, pending_kind_dealloc}, {0, NULL}};
static PyType_Spec pending_kind_spec = {
    "_tfprof.shim._native.PendingKind", sizeof(PendingKind), 0, Py_TPFLAGS_DEFAULT, pending_kind_slots,
};

/* `arguments` is (kind, local). */
static PyObject *set_pending_kind(PyObject *arguments, PyObject *Py_UNUSED(model)) {
    ThreadFields *state = thread_state(PyTuple_GetItem(arguments, 1));
    if (!state) return NULL;
    if (!is_idle(state)) Py_RETURN_NONE;
    PendingKind *pending = (PendingKind *)PyType_GenericAlloc(pending_kind_type, 0);
    if (!pending) return NULL;
    Py_INCREF((PyObject *)state);
    pending->thread_state = state;
    pending->previous_kind = state->pending_kind;
    state->pending_kind = (int)PyLong_AsLong(PyTuple_GetItem(arguments, 0));
    return (PyObject *)pending;
}

static PyMethodDef function_batch_method = {"set_pending_kind", set_pending_kind, METH_O, NULL};

static PyObject *function_batch_callback(PyObject *Py_UNUSED(module), PyObject *args) {
    int kind;
    PyObject *local;
    return PyArg_ParseTuple(args, "iO", &kind, &local) ? PyCFunction_NewEx(&function_batch_method, args, NULL) : NULL;
}

/* The running batch of a thread, which ends when this object is released. */
typedef struct {
    PyObject_HEAD
    Hook *hook;
    ThreadFields *thread_state;
    CountedFields *batch;
} RunningBatch;

static PyTypeObject *running_batch_type;
static PyObject *end_name;

/* Report the end of a batch that failed or had a traced run. */
static void report_end(PyObject *batch, int has_failed) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *result = PyObject_CallMethodObjArgs(batch, end_name, has_failed ? Py_True : Py_False, NULL);
    if (!result) PyErr_WriteUnraisable(batch);
    Py_XDECREF(result);
    PyErr_Restore(type, value, traceback);
}

static void end_batch(RunningBatch *running) {
    CountedFields *batch = running->batch;
    ThreadFields *state = running->thread_state;
    /* When the method fails, the interpreter releases this object while the exception is set. */
    int has_failed = PyErr_Occurred() != NULL;
    if (state->outermost_call == batch->reference) end_call(state, running->hook->fields[BATCH_NO_CALL]);
    if (has_failed || batch->has_run) report_end((PyObject *)batch, has_failed);
}

static void running_batch_dealloc(PyObject *self) {
    RunningBatch *running = (RunningBatch *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (running->batch && running->batch->tracker != Py_None) end_batch(running);
    Py_XDECREF((PyObject *)running->batch);
    Py_XDECREF((PyObject *)running->thread_state);
    Py_XDECREF((PyObject *)running->hook);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot running_batch_slots[] = {{Py_tp_dealloc, running_batch_dealloc}, {0, NULL}};
static PyType_Spec running_batch_spec = {
    "_tfprof.shim._native.RunningBatch", sizeof(RunningBatch), 0, Py_TPFLAGS_DEFAULT, running_batch_slots,
};

/* Return 1 if the shim remembers the model, else 0; -1 with an exception. */
static int is_remembered(Hook *hook, PyObject *model) {
    PyObject *id = PyLong_FromVoidPtr(model);
    int result = id ? PySet_Contains(hook->fields[MODEL_IDS], id) : -1;
    Py_XDECREF(id);
    return result;
}

/* Return the batch object of a thread, a borrowed reference to one that nothing else uses; NULL with an exception. */
static CountedFields *unused_batch(Hook *hook, ThreadFields *state) {
    PyTypeObject *batch_class = (PyTypeObject *)hook->fields[BATCH_CLASS];
    PyObject *batch = state->counted_batch;
    if (batch && Py_TYPE(batch) == batch_class && Py_REFCNT(batch) == 1) return (CountedFields *)batch;
    batch = PyType_GenericAlloc(batch_class, 0);
    if (!batch) return NULL;
    ((CountedFields *)batch)->reference = PyWeakref_NewRef(batch, NULL);
    if (!((CountedFields *)batch)->reference) {
        Py_DECREF(batch);
        return NULL;
    }
    set_reference(&state->counted_batch, batch);
    Py_DECREF(batch); /* the state keeps it */
    return (CountedFields *)batch;
}

/* Count a batch and let it be the outermost call of a thread until the result is released. Return NULL if the batch is
 * to be timed, or with an exception. */
static PyObject *begin_batch(Hook *hook, ThreadFields *state) {
    struct timespec now;
    RunningBatch *running = (RunningBatch *)PyType_GenericAlloc(running_batch_type, 0);
    CountedFields *batch = running ? unused_batch(hook, state) : NULL;
    /* No code of the job's, such as a finalizer, can run from here on. */
    long long ordinal = batch ? take_untimed(hook->ordinals) : 0;
    if (!ordinal) {
        Py_XDECREF((PyObject *)running);
        return NULL;
    }
    Py_INCREF((PyObject *)hook);
    running->hook = hook;
    Py_INCREF((PyObject *)state);
    running->thread_state = state;
    Py_INCREF((PyObject *)batch);
    running->batch = batch;
    batch->has_run = 0;
    begin_counted(state, batch, hook->fields[BATCH_TRACKER], ordinal);
    clock_gettime(CLOCK_MONOTONIC, &now);
    batch->start = now.tv_sec * 1000000000LL + now.tv_nsec;
    return (PyObject *)running;
}

static PyObject *count_batch(PyObject *self, PyObject *model) {
    Hook *hook = (Hook *)self;
    ThreadFields *state = thread_state(hook->local);
    if (state && has_untimed(hook->ordinals) && !state->is_busy && is_remembered(hook, model) == 1) {
        PyObject *running = begin_batch(hook, state);
        if (running) return running;
    }
    return PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(hook->fields[BEGIN_BATCH], model, NULL);
}

static PyMethodDef run_batch_method = {"count_batch", count_batch, METH_O, NULL};

static PyObject *run_batch_callback(PyObject *Py_UNUSED(module), PyObject *args) {
    Hook *hook = new_hook(args);
    if (!hook) return NULL;
    PyObject *callback = NULL;
    if (!hook->fields[BEGIN_BATCH] || !PyAnySet_Check(hook->fields[MODEL_IDS]) ||
        !is_counted_class(hook->fields[BATCH_CLASS]))
        PyErr_SetString(PyExc_TypeError, "the class is no subclass of CountedFields, or arguments are missing");
    else
        callback = PyCFunction_NewEx(&run_batch_method, (PyObject *)hook, NULL);
    Py_DECREF((PyObject *)hook);
    return callback;
}

/* ---- the module ----------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"concrete_callback", concrete_callback, METH_VARARGS,
     "concrete_callback(ordinals, graphs, local, initializer_name, begin) -> callback\n\n"
     "The callback counts a call of a concrete function and returns None, or returns begin(function)."},
    {"annotation_factory", annotation_factory, METH_VARARGS,
     "annotation_factory(ordinals, graphs, local, is_recording, inert, annotate) -> factory\n\n"
     "The factory counts a function call and returns `inert`, or returns annotate(name, **kwargs)."},
    {"add_annotation", add_annotation, METH_VARARGS,
     "add_annotation(factory, kind, ordinals, inert): let the factory also count batches of `kind`."},
    {"function_batch_callback", function_batch_callback, METH_VARARGS,
     "function_batch_callback(kind, local) -> callback\n\n"
     "The callback sets the kind of the thread's next call, until its result is released."},
    {"run_batch_callback", run_batch_callback, METH_VARARGS,
     "run_batch_callback(ordinals, graphs, local, tracker, batch_class, no_call, model_ids, begin) -> callback\n\n"
     "The callback counts a batch, which lasts until the result is released, or returns begin(model)."},
    {"run_needs_python", (PyCFunction)(void (*)(void))run_needs_python, METH_FASTCALL,
     "run_needs_python(session, options, feed_dict, fetch_list, target_list) -> False if the run was counted"},
    {"tape_callbacks", tape_callbacks, METH_VARARGS,
     "tape_callbacks(ordinals, graphs, local, tracker, step_class, no_call,\n"
     "tape_entered, tape_left, gradient_called) -> callbacks of a tape's __enter__, __exit__ and gradient\n\n"
     "They count training steps, or call the function of the same event."},
    {"call_needs_python", call_needs_python, METH_O,
     "call_needs_python(tf_callable) -> False if the call was counted"},
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
    ordinals_name = PyUnicode_InternFromString("_tfprof_ordinals");
    thread_state_name = PyUnicode_InternFromString("thread_state");
    end_name = PyUnicode_InternFromString("end");
    if (!stack_name || !func_graph_name || !name_name || !run_name || !untimed_name || !ordinals_name ||
        !thread_state_name || !end_name)
        return NULL;
    is_python_37 = strncmp(Py_GetVersion(), "3.7.", 4) == 0;
    if (!add_type(&ordinals_type, &ordinals_spec) || !add_type(&hook_type, &hook_spec) ||
        !add_type(&run_signature_type, &run_signature_spec) ||
        !add_type(&thread_fields_type, &thread_fields_spec) || !add_type(&counted_fields_type, &counted_fields_spec) ||
        !add_type(&pending_kind_type, &pending_kind_spec) || !add_type(&running_batch_type, &running_batch_spec))
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    struct {
        const char *name;
        PyTypeObject *type;
    } types[] = {
        {"Ordinals", ordinals_type},
        {"RunSignature", run_signature_type},
        {"ThreadFields", thread_fields_type},
        {"CountedFields", counted_fields_type},
    };
    for (size_t index = 0; index < sizeof types / sizeof *types; index++) {
        Py_INCREF((PyObject *)types[index].type);
        if (PyModule_AddObject(module, types[index].name, (PyObject *)types[index].type) < 0) return NULL;
    }
    return module;
}
