// Cost of recording for autograd: about 50 small operators under each grad mode, and one product so
// large that the mode does not matter. One thread.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "benchmarks/timer.h"
#include "core/base/parallel.h"
#include "core/dispatch/call_op.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "launcher/command_line.h"

namespace lockstep {
namespace {

constexpr const char* kUnary[] = {
    "abs",   "neg",        "exp",    "log",       "sqrt",       "rsqrt", "sin",   "cos",
    "tanh",  "sigmoid",    "relu",   "gelu",      "silu",       "erf",   "exp2",  "log1p",
    "floor", "reciprocal", "square", "softplus",  "leaky_relu", "elu",   "sum",   "mean",
    "amax",  "t",          "clone",  "hardswish", "expm1",      "sign",  "trunc", "prod"};
constexpr const char* kBinary[] = {
    "add.Tensor",  "sub.Tensor", "mul.Tensor",        "div.Tensor", "maximum",   "minimum",
    "mm",          "matmul",     "pow.Tensor_Tensor", "atan2",      "eq.Tensor", "lt.Tensor",
    "fmod.Tensor", "linear",     "mse_loss",          "logaddexp",  "hypot",     "ne.Tensor"};

/// One operator call on small matrices with boxed arguments, as an interpreter makes it.
struct Call {
  const Operator* op;
  std::vector<Value> arguments;
};

std::vector<Call> calls_on(const Tensor& a, const Tensor& b) {
  std::vector<Call> calls;
  const auto add = [&](const char* name, std::initializer_list<Value> positional) {
    const Operator& op = dispatcher().find(name);
    calls.push_back({&op, bind_arguments(op, {positional.begin(), positional.size()})});
  };
  for (const char* name : kUnary) add(name, {Value(a)});
  for (const char* name : kBinary) add(name, {Value(a), Value(b)});
  return calls;
}

void run_once(const Call& call) {
  SmallVector<Value, 8> arguments(call.arguments);
  Stack stack(std::span<Value>(arguments.data(), arguments.size()));
  call.op->call_boxed(stack);
}

/// Runs `body` in the named mode. "recorded" and "grad_mode" differ only in their arguments.
template <class Body>
void in_mode(const std::string& mode, Body body) {
  if (mode == "no_grad") {
    const NoGradGuard guard;
    body();
  } else if (mode == "inference_mode") {
    const InferenceModeGuard guard;
    body();
  } else {
    body();
  }
}

int run(int argc, char** argv) {
  launcher::CommandLine line("Times small operators under each grad mode, and one large product.");
  int rounds = 7;
  int64_t side = 4096;
  bool json = false;
  line.option("--rounds", rounds, "Rounds, of which the median counts").between(1, 1000);
  line.option("--side", side, "Of the large product's matrices").between(1, 16384);
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  set_num_threads(1);
  const Timer time(rounds);
  nlohmann::ordered_json report;
  for (const std::string mode : {"recorded", "grad_mode", "no_grad", "inference_mode"}) {
    in_mode(mode, [&] {
      const Tensor a = ones({4, 4}).set_requires_grad(mode == "recorded");
      const Tensor b = ones({4, 4});
      double sum = 0;
      for (const Call& call : calls_on(a, b)) {
        const double ns = time([&] { run_once(call); }, 20000);
        report[mode][call.op->name()] = ns;
        sum += ns;
      }
      report[mode]["mean"] = sum / static_cast<double>(report[mode].size());
      const Tensor large = ones({side, side}).set_requires_grad(mode == "recorded");
      report[mode]["large_mm_ms"] = Timer(3)([&] { mm(large, large); }, 1) / 1e6;
    });
  }
  if (json) {
    fmt::print("{}\n", report.dump());
    return 0;
  }
  fmt::print("{:20} {:>10} {:>10} {:>10} {:>14}\n", "", "recorded", "grad_mode", "no_grad",
             "inference_mode");
  for (const auto& [name, recorded] : report["recorded"].items()) {
    fmt::print("{:20} {:10.1f} {:10.1f} {:10.1f} {:14.1f}\n", name, recorded.get<double>(),
               report["grad_mode"][name].get<double>(), report["no_grad"][name].get<double>(),
               report["inference_mode"][name].get<double>());
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
