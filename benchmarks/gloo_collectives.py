"""PyTorch's side of `lockstep bench collectives`: all_reduce with the gloo backend, in ranks started by
mpirun. Rank 0 prints one JSON object per line: bytes, time_us (mean of the slowest rank), cpu_s_per_gb
(of one rank, by getrusage) and machine_cpu_s_per_gb (of everything that the ranks' machines ran, by
/proc/stat). Called by benchmarks/collectives as `PYTHON THIS SECONDS BYTES...`; expects
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


def busy_seconds():
    """CPU seconds of all cores: user, nice, system, irq and softirq, without idle and iowait."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:8]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def sum_over_machines(value):
    """Sums `value` over machines, not ranks: ranks on one machine read the same /proc/stat."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        own = [file.readline(), value]
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, own)
    return sum(dict(reversed(told)).values())


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
        before, busy_before = cpu_seconds(), busy_seconds()
        taken = over_ranks(run(times), dist.ReduceOp.MAX) / times
        used, busy = cpu_seconds() - before, busy_seconds() - busy_before
        cpu = over_ranks(used, dist.ReduceOp.SUM) / (times * size)
        machines = sum_over_machines(busy) / (times * size)
        if rank == 0:
            print(json.dumps({"bytes": count, "time_us": taken * 1e6,
                              "cpu_s_per_gb": cpu / (count * 1e-9),
                              "machine_cpu_s_per_gb": machines / (count * 1e-9)}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
