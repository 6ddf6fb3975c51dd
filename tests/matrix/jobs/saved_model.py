"""Serving: a SavedModel's signature, called ten times."""

import tempfile

import tensorflow as tf
from _shared import report

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()


class Product(tf.Module):
    """Multiplies by its weights."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.ones([64, 64]))

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    def serve(self, x):
        return {"y": tf.matmul(x, self.w)}


with tempfile.TemporaryDirectory() as folder:
    module = Product()
    tf.saved_model.save(module, folder, signatures=module.serve)
    loaded = tf.saved_model.load(folder)
    signature = loaded.signatures["serving_default"]
    for _ in range(10):
        result = signature(tf.ones([8, 64]))
print(float(tf.reduce_sum(result["y"])))
report(function=10)
