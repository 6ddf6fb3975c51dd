"""Sessions that make the same native calls as TensorFlow's sessions."""

# Tracebacks name one line of a call, so the calls are split over lines as in TensorFlow's own file.
# fmt: off
import threading

from tensorflow.python.client import native as tf_session


class Op:
    """An op that depends on nothing; its type is its name."""

    def __init__(self, name):
        self.name = self.type = name
        self.inputs = self.control_inputs = ()


class Graph:
    """A graph with an op for every name."""

    version = 0
    _c_graph = None

    def __init__(self):
        self._lock = threading.RLock()

    def get_operations(self):
        """Return no operation."""
        return []

    def get_collection(self, name):
        """Return no variable."""
        return []

    def get_operation_by_name(self, name):
        """Return an op of this name."""
        return Op(name)


class BaseSession:
    """A session that computes ``x + 1``."""

    def __init__(self):
        self._session = object()
        self._closed = False
        self._config = None
        self.graph = Graph()
        self._outputs = {}

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Run one step; ``options`` are bytes, ``run_metadata`` a list that gets bytes."""
        options_ptr = tf_session.TF_NewBufferFromString(options) if options else None
        metadata_ptr = tf_session.TF_NewBuffer() if run_metadata is not None else None
        result = self._do_run(options_ptr, feed_dict or {}, self._fetches(fetches), metadata_ptr)
        if run_metadata is not None:
            run_metadata.append(tf_session.TF_GetBuffer(metadata_ptr))
        return result

    def _do_run(self, options, feed_dict, fetch_list, run_metadata):
        return self._call_tf_sessionrun(options, feed_dict, fetch_list, [], run_metadata)

    def _make_callable_from_options(self, callable_options):
        return BaseSession._Callable(self, callable_options)

    def _call_tf_sessionrun(self, options, feed_dict, fetch_list, target_list,
                            run_metadata):
        return tf_session.TF_SessionRun_wrapper(self._session, options, feed_dict,
                                                fetch_list, target_list,
                                                run_metadata)

    def _fetches(self, names):
        return [self._outputs.setdefault(name, tf_session.TF_Output(name)) for name in names]

    def _call_tf_sessionprun(self, handle, feed_dict, fetch_list):
        return tf_session.TF_SessionPRun_wrapper(self._session, handle, feed_dict,
                                                 fetch_list)

    class _Callable:
        """The result of `Session::MakeCallable`."""

        def __init__(self, session, callable_options):
            self._session = session
            self._handle = None
            options_ptr = tf_session.TF_NewBufferFromString(callable_options.SerializeToString())
            try:
                self._handle = tf_session.TF_SessionMakeCallable(
                    session._session, options_ptr)
            finally:
                tf_session.TF_DeleteBuffer(options_ptr)

        def __call__(self, *args, **kwargs):
            run_metadata = kwargs.get("run_metadata")
            try:
                run_metadata_ptr = tf_session.TF_NewBuffer() if run_metadata else None
                ret = tf_session.TF_SessionRunCallable(self._session._session,
                                                       self._handle, args,
                                                       run_metadata_ptr)
                if run_metadata:
                    run_metadata.ParseFromString(tf_session.TF_GetBuffer(run_metadata_ptr))
            finally:
                if run_metadata_ptr:
                    tf_session.TF_DeleteBuffer(run_metadata_ptr)
            return ret

        def __del__(self):
            if self._handle is not None and self._session._session is not None and not self._session._closed:
                tf_session.TF_SessionReleaseCallable(self._session._session, self._handle)
