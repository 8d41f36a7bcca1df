"""Operations and bytes are those of the tensors themselves."""

import numpy as np
import pytest

from anatomy.table import formulas

SHAPES = [(2, 3, 4), (1, 1, 1), (7, 5, 3), (16, 8, 1)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_a_product_written_out_counts_its_own_operations(m, n, k):
    a, b, c = np.ones((m, k)), np.ones((k, n)), np.zeros((m, n))
    done = 0
    for row in range(m):
        for column in range(n):
            for inner in range(k):
                c[row, column] += a[row, inner] * b[inner, column]
                done += 2  # one product, one sum
    assert (c == a @ b).all()
    assert formulas.matmul_flops(m, n, k) == done


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_bytes_of_a_product_are_those_of_its_three_matrices(m, n, k, dtype):
    a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
    moved = a.nbytes + b.nbytes + (a @ b).nbytes
    assert formulas.matmul_bytes(m, n, k, a.itemsize) == moved


def test_pytorch_counts_a_product_alike():
    torch = pytest.importorskip("torch", reason="torch is absent")
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        torch.ones(5, 7) @ torch.ones(7, 3)
    assert formulas.matmul_flops(m=5, n=3, k=7) == counter.get_total_flops()


def test_layer_norm_reads_x_weight_and_bias_and_writes_y():
    x, weight, bias = (np.ones(shape, "float16") for shape in ((6, 10), 10, 10))
    assert formulas.layer_norm_bytes(6, 10, 2) == 2 * x.nbytes + weight.nbytes + bias.nbytes


def test_a_copy_moves_every_byte_twice_and_an_addition_three_times():
    x = np.ones(1000, "float32")
    assert formulas.copy_bytes(x.size, x.itemsize) == 2 * x.nbytes
    assert formulas.pointwise_bytes(x.size, x.itemsize) == 2 * x.nbytes
    assert formulas.pointwise_bytes(x.size, x.itemsize, reads=2) == 3 * x.nbytes


def test_counts_of_large_products_are_exact():
    assert formulas.matmul_flops(2**20, 2**20, 2**20) == 2**61
    assert isinstance(formulas.matmul_bytes(8192, 8192, 8192, 2), int)
