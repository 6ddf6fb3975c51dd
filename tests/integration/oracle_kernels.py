"""Run by a TensorFlow of its own: prints the op types that it has kernels for, as JSON."""

import json

from tensorflow.python.framework import kernels

print(json.dumps(sorted({kernel.op for kernel in kernels.get_all_registered_kernels().kernel})))
