// Cost of the plug-in ABI: an operator whose kernel does nothing, registered in the program and in
// a plug-in. Nanoseconds per call, the minimum of many short alternating rounds; one thread.

#include "core/plugin/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/dispatch/call_op.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"

namespace lockstep {
namespace {

Outputs like_first(const Tensor& self) { return one(self.sizes(), self.dtype()); }
void do_nothing(const Out&, const In&) {}

LS_OP(noop, Tensor(const Tensor&), "bench::noop(Tensor self) -> Tensor")
    .doc("Leaves its result as it was allocated.")
    .structured(&like_first);
LS_OP(replaced, Tensor(const Tensor&), "bench::replaced(Tensor self) -> Tensor")
    .doc("The same; the plug-in puts its kernel in front.")
    .structured(&like_first);
LS_KERNEL(CPU, "bench::noop", do_nothing, Strides::kContiguous);

double nanoseconds(const Operator& op, const Tensor& x) {
  constexpr int kCalls = 5000;
  std::vector<Value> arguments = {x};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) {
    Stack stack(arguments);
    op.call_boxed(stack);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / kCalls;
}

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void run() {
  const Plugin plugin = load_library(NOOP_PLUGIN);
  const NoGradGuard guard;
  const Tensor x = ones({4});
  const Operator* const operators[] = {&dispatcher().find("bench::noop"),
                                       &dispatcher().find("bench::replaced"),
                                       &dispatcher().find("plugin::noop")};
  std::vector<double> rounds[3];
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < 3; ++i) rounds[i].push_back(nanoseconds(*operators[i], x));
  }
  const double block = least(rounds[0]);
  fmt::print("block                          {:6.1f}\n", block);
  fmt::print("block, the plug-in's kernel    {:6.1f}  {:+.1f}\n", least(rounds[1]),
             least(rounds[1]) - block);
  fmt::print("plug-in's rule and kernel      {:6.1f}  {:+.1f}\n", least(rounds[2]),
             least(rounds[2]) - block);
}

}  // namespace
}  // namespace lockstep

int main() { lockstep::run(); }
