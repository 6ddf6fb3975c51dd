"""Orders a few traced steps after an alert about slower steps, so that their ops are recorded."""

import os
import socket
from typing import Final

from ..formats import orders
from ..formats.orders import Giver, Order
from .alerts.alert import SLOWER, Alert

#: Minimum interval between two orders to the same job (seconds).
INTERVAL_S: Final = 300.0
#: Time limit for the job to apply the order (seconds).
_TIMEOUT_S: Final = 60.0
_OFF: Final = "off"


class AlertOrders:
    """Makes an order to trace ``steps`` steps after an alert; no order if `steps` is 0.

    A job that was started with tracing off gets no order. An order in force is not replaced.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._giver = Giver("tfprof", socket.gethostname(), os.getpid())
        self._not_before: dict[int, float] = {}

    def order(self, uid: int, alert: Alert, policy: str, now: float) -> Order | None:
        """Return the order for job ``uid`` after ``alert``, None if there is none.

        ``policy`` is the job's policy at its start.
        """
        if not self.steps or alert.slug != SLOWER or policy == _OFF or now < self._not_before.get(uid, 0.0):
            return None
        self._not_before = {job: until for job, until in self._not_before.items() if until > now}
        self._not_before[uid] = now + INTERVAL_S
        return Order(orders.TRACE, self._giver, steps=self.steps, patience_s=_TIMEOUT_S, gives_way=True)
