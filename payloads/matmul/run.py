"""Compute matrix products for a while and report GFLOP/s. Python 3.5, standard library only.

Pure Python computes in one process a thread, each with matrices of its own memory; NumPy
computes in one process and gets its number of threads through the environment.
"""

import json
import os
import statistics
import sys

import farm_payload as farm

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
DEFAULT_WINDOW_S = 2.0
DEFAULT_WARMUP_S = 0.2


def usable_cores():
    """Cores that are online and that this process may use."""
    return min(os.sysconf("SC_NPROCESSORS_ONLN"), len(os.sched_getaffinity(0)))


def set_thread_count(threads):
    """Tell NumPy's library before it is loaded."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)


def make_product(engine, left, right, dtype):
    """The product by the engine asked for; ends as unsupported where it cannot be had."""
    from product import NumpyProduct, PythonProduct

    if engine in ("auto", "numpy"):
        try:
            return NumpyProduct(left, right, dtype)
        except ImportError as error:
            if engine == "numpy":
                farm.unsupported("no NumPy here: {}".format(error))
    if dtype != "float64":
        farm.unsupported("no NumPy here, and pure Python computes in float64 only")
    return PythonProduct(left, right)


def work(product, end):
    """Compute until `end`, at least once; the seconds of each product."""
    times = []
    before = farm.boot_time()
    while not times or before < end:
        product.compute()
        now = farm.boot_time()
        times.append(now - before)
        before = now
    return times


def fork_worker(product, end):
    """Begin a worker; its pid and the pipe that its times come through."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            json.dump(work(product, end), pipe)
        status = 0
    finally:
        os._exit(status)


def work_in_processes(product, end, count):
    """`count` workers at once; the times of all their products."""
    workers = [fork_worker(product, end) for _ in range(count)]
    times, is_complete = [], True
    for pid, reader in workers:
        with os.fdopen(reader) as pipe:
            text = pipe.read()
        is_complete = os.waitpid(pid, 0)[1] == 0 and is_complete
        if is_complete:
            times.extend(json.loads(text))
    if not is_complete:
        raise RuntimeError("a worker process died; was it short of memory?")
    return times


def main():
    from product import is_right, random_rows

    values = farm.params()
    size, threads, dtype = values["size"], values["threads"], values.get("dtype", "float64")
    if threads > usable_cores():
        farm.unsupported("{} threads, but {} cores are usable".format(threads, usable_cores()))
    set_thread_count(threads)
    left, right = random_rows(size, 1), random_rows(size, 2)
    product = make_product(values.get("engine", "auto"), left, right, dtype)
    farm.note("engine: {} on Python {}.{}.{}".format(product.name, *sys.version_info[:3]))
    if not is_right(product, left, right, dtype):
        sys.stderr.write("the product is wrong\n")
        return 1
    has_numpy = product.name != "python"
    processes = 1 if has_numpy else threads
    work(product, farm.boot_time() + float(os.environ.get("FARM_WARMUP_S") or DEFAULT_WARMUP_S))
    window_s = float(os.environ.get("FARM_WINDOW_S") or DEFAULT_WINDOW_S)
    with farm.window():
        begin = farm.boot_time()
        if processes == 1:
            times = work(product, begin + window_s)
        else:
            times = work_in_processes(product, begin + window_s, processes)
        seconds = farm.boot_time() - begin
    farm.metric("gflops", 2.0 * size ** 3 * len(times) / seconds / 1e9, "GFLOP/s")
    farm.metric("iterations", len(times), "products")
    farm.metric("time", 1000 * statistics.median(times), "ms")
    farm.metric("has_numpy", int(has_numpy), "1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
