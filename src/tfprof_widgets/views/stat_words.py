"""What the profiler's stats are called and mean, for people."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """What a stat is called, in which unit it counts (``bytes`` or none), and what it says."""

    label: str
    unit: str = ""
    meaning: str = ""


_STATS = {
    "merged_events": Words("Events merged", "", "into this bar, whose length is their times added up"),
    # ops and functions
    "shape": Words("Shape", "", "of the tensor"),
    "shapes": Words("Shapes", "", "of the elements' components"),
    "types": Words("Types", "", "of the elements' components"),
    "data_type": Words("Data type", "", "of the tensor"),
    "tf_op": Words("TensorFlow op", "", "for which it was done"),
    "kernel_type": Words("Op type", "", "that the executor ran"),
    "kernel_name": Words("Op", "", "that the executor ran"),
    "func_name": Words("Function", "", "that was called"),
    "eager_op": Words("Eager op", "", "called from Python"),
    "is_func": Words("Calls a function", "", "1: a tf.function, 0: a single op"),
    "is_eager": Words("Eager", "", "1: run op by op from Python"),
    "tf_function_call": Words("Function call", "", "whether it was traced anew, and compiled by XLA"),
    "tracing_count": Words("Times traced", "", "of the function until then; each costs time"),
    "annotation": Words("Annotation", "", "of the work by the op that launched it"),
    "step_num": Words("Step number", "", "given by the program's mark"),
    "step_name": Words("Step", "", "as named by the profiler"),
    "iter_num": Words("Iteration", "", "of the loop that the op is in"),
    "device": Words("Device", "", "that it ran on"),
    "from": Words("From", "", "op that sends the tensor"),
    "to": Words("To", "", "op that receives the tensor"),
    "edge_name": Words("Edge", "", "tensor passed between devices"),
    "num_output_edges": Words("Output edges", "", "ops that take its results"),
    "num_output_control_edges": Words("Control edges", "", "ops that wait for it to end"),
    "bytes": Words("Size", "bytes", "of the data"),
    "flops": Words("Floating-point operations", "", "by the profiler's cost model"),
    "bytes_accessed": Words("Memory traffic", "bytes", "by the profiler's cost model"),
    # GPU
    "kernel_details": Words("Launch", "", "registers and shared memory, grid and block of the kernel"),
    "memcpy_details": Words("Copy", "", "bytes, and the device that gets them"),
    "memset_details": Words("Fill", "", "bytes that were set"),
    "memalloc_details": Words("Allocation", "", "by the GPU's driver"),
    "theoretical_occupancy_pct": Words("Occupancy (%)", "", "the most that the launch allows"),
    "hlo_op": Words("HLO op", "", "of the compiled program"),
    "hlo_module": Words("HLO module", "", "compiled program"),
    "hlo_category": Words("HLO category", "", "kind of op in the compiled program"),
    # memory
    "allocator_name": Words("Allocator", "", "that gave the memory"),
    "allocation_bytes": Words("Allocated", "bytes", "by this event, rounded up by the allocator"),
    "requested_bytes": Words("Requested", "bytes", "by the op"),
    "bytes_allocated": Words("In use", "bytes", "by the allocator's users, after this event"),
    "bytes_available": Words("Free", "bytes", "at the allocator, after this event"),
    "bytes_reserved": Words("Reserved", "bytes", "for the program's stack"),
    "peak_bytes_in_use": Words("Peak in use", "bytes", "until then"),
    "fragmentation": Words("Fragmentation", "", "0: the free memory is one piece; 1: many small ones"),
    "region_type": Words("Kind of memory", "", "output of an op, temporary, …"),
    # tf.data
    "name": Words("Stage", "", "with its place in the pipeline, or op"),
    "long_name": Words("Full name", "", "in the pipeline"),
    "batch_size": Words("Batch size", "", "elements in a batch"),
    "buffer_size": Words("Buffer size", "", "elements that the buffer can hold"),
    "buffer_limit": Words("Buffer limit", "", "elements that may wait, as tuned at that time"),
    "buffered_elements": Words("Buffered elements", "", "waiting at that time: 0 makes the consumer wait"),
    "buffered_bytes_MB": Words("Buffered (MB)", "", "waiting at that time"),
    "parallelism": Words("Parallelism", "", "calls that run side by side"),
    "autotune": Words("Autotuned", "", "whether tf.data chooses the setting"),
    "autotune_mode": Words("Autotune mode", "", "what tf.data tunes for"),
    "algorithm": Words("Autotune algorithm", "", "how tf.data searches for settings"),
    "deterministic": Words("Deterministic", "", "whether elements keep their order"),
    "drop_remainder": Words("Drops the remainder", "", "whether a last, smaller batch is left out"),
    "parallel_copy": Words("Copies in parallel", "", "whether a batch is put together by several threads"),
    "interleave_depth": Words("Interleave depth", "", "nested interleaves around the stage"),
    "max_batch_results": Words("Batches ready at most", "", "before the stage waits"),
    "cpu_budget": Words("CPU budget", "", "threads that autotuning may use"),
    "ram_budget_megabytes": Words("RAM budget (MB)", "", "that autotuning may use"),
    "ram_usage_megabytes": Words("RAM in use (MB)", "", "of the machine's"),
    "threadpool_size": Words("Threads", "", "of the pipeline's own pool"),
    "intra_op_parallelism": Words("Threads within an op", "", "of the pipeline"),
    "warm_start": Words("Warm start", "", "whether the pipeline starts before the first element is asked for"),
    "element_size": Words("Element size", "bytes", "of one batch or example"),
}  # fmt: skip


def words_of(stat: str) -> Words:
    """Return what a stat is called and means; an unknown one has its own name."""
    return _STATS.get(stat, Words(stat))
