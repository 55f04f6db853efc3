"""The peer of `lockstep bench collectives`: all_reduce of PyTorch's gloo backend, by ranks that mpirun
started. Prints a JSON object a line, on rank 0: bytes, time_us (mean of the slowest rank), cpu_s_per_gb
(of a rank, by getrusage). Called by benchmarks/collectives as `PYTHON THIS SECONDS BYTES...`; expects
MASTER_ADDR, MASTER_PORT."""

import json
import os
import resource
import sys
import time

import torch
import torch.distributed as dist


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def over_ranks(value, op):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, op=op)
    return tensor.item()


def main():
    seconds, sizes = float(sys.argv[1]), [int(text) for text in sys.argv[2:]]
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    for count in sizes:
        tensor = torch.zeros(max(count // 4, 1))

        def run(times):
            dist.barrier()
            start = time.perf_counter()
            for _ in range(times):
                dist.all_reduce(tensor)
            return time.perf_counter() - start

        trial = over_ranks(run(3) / 3, dist.ReduceOp.MAX)
        times = int(min(max(seconds / trial, 3), 20000))
        before = cpu_seconds()
        taken = over_ranks(run(times), dist.ReduceOp.MAX) / times
        cpu = over_ranks(cpu_seconds() - before, dist.ReduceOp.SUM) / (times * size)
        if rank == 0:
            print(json.dumps({"bytes": count, "time_us": taken * 1e6,
                              "cpu_s_per_gb": cpu / (count * 1e-9)}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
