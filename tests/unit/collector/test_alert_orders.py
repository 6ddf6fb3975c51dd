from tfprof.collector.alert_orders import INTERVAL_S, AlertOrders
from tfprof.collector.alerts.alert import SLOWER, STALL, Alert
from tfprof.formats import orders

ALERT = Alert(1, 1, SLOWER)


def test_an_alert_about_slower_steps_orders_a_few_traced_steps():
    order = AlertOrders(5).order(1, ALERT, "budget=1%", 0.0)
    assert order is not None
    assert (order.action, order.steps, order.gives_way, order.ends_by_itself) == (orders.TRACE, 5, True, True)
    assert orders.order_of(order.document()) == order


def test_no_order_is_given_for_other_alerts_or_jobs_without_tracing_or_zero_steps():
    assert AlertOrders(5).order(1, Alert(1, 1, STALL), "", 0.0) is None
    assert AlertOrders(5).order(1, ALERT, "off", 0.0) is None
    assert AlertOrders(0).order(1, ALERT, "", 0.0) is None


def test_a_job_gets_one_order_per_interval():
    alert_orders = AlertOrders(5)
    assert [alert_orders.order(uid, ALERT, "", now) is None for uid, now in ((1, 0), (1, 1), (2, 1))] == [
        False,
        True,
        False,
    ]
    assert alert_orders.order(1, ALERT, "", INTERVAL_S) is not None
