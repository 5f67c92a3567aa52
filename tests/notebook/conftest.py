"""One kernel for each file of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from in_kernel import ASSERT_NO_SESSION, Kernel, start_kernel


@pytest.fixture(scope="module")
def temporary(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kernel")


@pytest.fixture(scope="module")
def shared_kernel(temporary):
    client, running = start_kernel(temporary)
    with running:
        kernel = Kernel(client)
        loaded = kernel.run(
            "import sys, time\n"
            "begin = time.perf_counter()\n"
            "%load_ext tfprof_widgets\n"
            "print(time.perf_counter() - begin, sorted({'tensorflow', 'pandas', 'bokeh'} & set(sys.modules)))"
        )
        kernel.load_s, kernel.loaded = loaded.stdout.split(maxsplit=1)
        kernel.run(
            f"import tensorflow as tf, keras, os\nscratch = {str(temporary / 'scratch')!r}\na = tf.ones((64, 64))\n"
        )
        yield kernel


@pytest.fixture
def kernel(shared_kernel, temporary):
    """The kernel; afterwards neither a session nor a temporary capture may be left."""
    yield shared_kernel
    assert shared_kernel.run(ASSERT_NO_SESSION).error is None
    assert not list(temporary.glob("*tfprof*"))
