"""Matrix products in pure Python and with NumPy, and a check that they are right.

Python 3.5. NumPy is imported where it is used: a board need not have it.
"""

import random

CHECK_TOLERANCE = {"float64": 1e-9, "float32": 1e-3}


def random_rows(size, seed):
    """A square matrix with values from -1 to 1, as a list of rows."""
    source = random.Random(seed)
    return [[source.uniform(-1.0, 1.0) for _ in range(size)] for _ in range(size)]


def vector_product(rows, vector):
    """Matrix times vector, in pure Python."""
    return [sum(a * b for a, b in zip(row, vector)) for row in rows]


class PythonProduct:
    """Lists of floats; the second matrix is kept by columns."""

    name = "python"

    def __init__(self, left, right):
        self.left = left
        self.columns = list(zip(*right))

    def compute(self):
        """A x B as rows."""
        return [
            [sum(map(float.__mul__, row, column)) for column in self.columns] for row in self.left
        ]


class NumpyProduct:
    """NumPy arrays; the library uses as many threads as its environment allows."""

    name = "numpy"

    def __init__(self, left, right, dtype):
        import numpy

        self.left = numpy.array(left, dtype=dtype)
        self.right = numpy.array(right, dtype=dtype)
        self.name = "numpy " + numpy.__version__

    def compute(self):
        """A x B as an array."""
        return self.left.dot(self.right)


def is_right(product, left, right, dtype):
    """Whether A x B, times a vector, is A times (B times the vector)."""
    size = len(left)
    vector = random_rows(size, 3)[0]
    wanted = vector_product(left, vector_product(right, vector))
    found = vector_product([[float(x) for x in row] for row in product.compute()], vector)
    scale = max(abs(x) for x in wanted) + size
    return all(abs(a - b) <= CHECK_TOLERANCE[dtype] * scale for a, b in zip(found, wanted))
