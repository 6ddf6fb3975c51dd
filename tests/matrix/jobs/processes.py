"""multiprocessing, by `fork` or `spawn`: two processes, one after the other.

Forked processes inherit the import of TensorFlow.
"""

import multiprocessing
import sys

from _shared import report


def run_session(tf):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [8, 64])
        loss = tf.reduce_sum(tf.matmul(x, tf.ones([64, 64])))
        return [float(session.run(loss, {x: [[1.0] * 64] * 8})) for _ in range(10)]


def call_function(tf):
    step = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)))
    return [float(step(tf.ones([64, 64]))) for _ in range(10)]


def work(number):
    import tensorflow as tf

    print(number, run_session(tf))
    if tf.__version__.startswith("1."):
        report(run=10)
    else:
        print(number, call_function(tf))
        report(run=10, function=10)


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "fork":
        import tensorflow as tf  # noqa: F401 - for the children
    for number in range(2):
        process = context.Process(target=work, args=(number,))
        process.start()
        process.join(90)
        if process.is_alive():
            process.kill()
        if process.exitcode != 0:
            sys.exit(1)
