#include "launcher/bench/bench_calls.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "autograd/grad_mode.h"
#include "core/base/json_line.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "launcher/command_line.h"
#include "profile/call_time.h"

namespace lockstep::launcher {

namespace {

struct Options {
  std::string device = "cpu";
  int rounds = 25;
  bool json = false;
};

void run_calls(const Options& options) {
  const Device device = parse_device(options.device);
  (void)find_runtime(device);  // throws if there is no such device
  const TensorOptions of_device{DType::kF32, device};
  const Tensor a = ones({4}, of_device);
  const Tensor b = ones({4}, of_device);
  const Tensor out = empty({4}, of_device);
  const Tensor square = ones({4, 4}, of_device);
  const Tensor leaf = ones({4}, of_device).set_requires_grad();
  JsonLine line;
  line.add("device", to_string(device));
  const auto measure = [&](const char* name, const auto& call) {
    const double ns = profile::queue_seconds(device, options.rounds, call) * 1e9;
    if (options.json) {
      line.add(fmt::format("{}_ns", name), ns);
    } else {
      fmt::print("{:<14} {:>9.1f} ns\n", name, ns);
    }
  };
  {
    const NoGradGuard no_grad;
    measure("empty", [&] { (void)empty({4}, of_device); });
    measure("view", [&] { (void)a.view({2, 2}); });
    measure("add", [&] { (void)add(a, b); });
    measure("add_inplace", [&] { out.add_(a); });
    measure("add_out", [&] { add_out(out, a, b); });
    measure("relu", [&] { (void)relu(a); });
    measure("mm", [&] { (void)mm(square, square); });
    measure("layer_norm", [&] { (void)layer_norm(square, {4}, a, b); });
  }
  measure("add_recorded", [&] { (void)add(leaf, b); });
  measure("mul_recorded", [&] { (void)mul(leaf, b); });
  if (options.json) fmt::print("{}\n", line.text());
}

}  // namespace

void add_bench_calls(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb = bench.verb("calls", "What small operators cost the thread that calls them");
  verb.option("--device", options->device, "Device (default cpu)");
  verb.option("--rounds", options->rounds, "Rounds, of which the median counts (default 25)")
      .positive();
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] { run_calls(*options); });
}

}  // namespace lockstep::launcher
