#include "launcher/bench/bench_allocator.h"
#include "launcher/bench/bench_calls.h"
#include "launcher/bench/bench_checkpoint.h"
#include "launcher/bench/bench_collectives.h"
#include "launcher/bench/bench_kernels.h"
#include "launcher/bench/bench_matmul.h"
#include "launcher/bench/bench_overlap.h"
#include "launcher/bench/bench_step.h"
#include "launcher/bench/bench_streams.h"
#include "launcher/command_line.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

void add_bench(const Verb& app) {
  const Verb bench = app.verb("bench", "Measure this machine");
  bench.requires_verb();
  add_bench_step(bench);
  add_bench_checkpoint(bench);
  add_bench_allocator(bench);
  add_bench_streams(bench);
  add_bench_calls(bench);
  add_bench_kernels(bench);
  add_bench_matmul(bench);
  add_bench_collectives(bench);
  add_bench_overlap(bench);
}

}  // namespace lockstep::launcher
