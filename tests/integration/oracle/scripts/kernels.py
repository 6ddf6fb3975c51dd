"""Runs under TensorFlow 1.15 or 2.x: prints the op types that have kernels, as JSON."""

import json

from tensorflow.python.framework import kernels

print(json.dumps(sorted({kernel.op for kernel in kernels.get_all_registered_kernels().kernel})))
