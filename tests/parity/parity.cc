// Trains a small model step by step like PyTorch's recorded run and reports where they differ.
// usage: parity DIR [--ranks N] [--device NAME]
// With N ranks (default 1) each computes its share of every batch.
// Exit status: 0 within the tolerances, 1 outside, 2 usage, 3 an unreadable folder, a batch that N
// ranks cannot share, or a missing device.

#include <fmt/core.h>

#include <exception>
#include <string>

#include "core/dispatch/cpu_fallback.h"
#include "launcher/command_line.h"
#include "tests/parity/parity_run.h"

namespace {

using lockstep::ParityRun;

int compare(const std::string& folder, int ranks, const std::string& device) {
  const ParityRun run = lockstep::train_beside(folder, ranks, lockstep::parse_device(device));
  fmt::print("loss            {:.3e} at {} (limit {:.0e})\n", run.loss.value, run.loss.where,
             ParityRun::kLossTolerance);
  fmt::print("grad norm       {:.3e} relative, at {} (limit {:.0e})\n", run.grad_norm.value,
             run.grad_norm.where, ParityRun::kNormTolerance);
  fmt::print("first gradients {:.3f} of the tolerance, in {}\n", run.first_gradient.value,
             run.first_gradient.where);
  fmt::print("final weights   {:.3e}, in {}\n", run.final_weight.value, run.final_weight.where);
  for (const auto& [op, calls] : lockstep::cpu_fallback_calls()) {
    fmt::print("on the cpu      {} calls of {}\n", calls, op);
  }
  fmt::print("{}\n", run.good() ? "agrees" : "DIFFERS");
  return run.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::launcher::CommandLine line(
      "Trains a model beside PyTorch's recorded run and reports where they part.");
  std::string folder;
  int ranks = 1;
  std::string device = "cpu";
  line.option("DIR", folder, "What PyTorch's run left").required();
  line.option("--ranks", ranks, "Data-parallel ranks, threads of this process (default 1)")
      .between(1, 64);
  line.option("--device", device, "Where the model is (default cpu)");
  if (const auto status = line.parse(argc, argv)) return *status;
  try {
    return compare(folder, ranks, device);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
