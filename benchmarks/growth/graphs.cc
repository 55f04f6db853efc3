// Recorded graphs with many inputs, parts and nodes.

#include <vector>

#include "autograd/autograd.h"
#include "benchmarks/growth/growth_case.h"
#include "compile/compile.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"

namespace lockstep::growth {

namespace {

Tensor sum_of(const std::vector<Tensor>& terms) {
  Tensor total = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) total = total + terms[i];
  return total;
}

void differentiate(int64_t count, Meter& meter) {
  std::vector<Tensor> inputs;
  for (int64_t i = 0; i < count; ++i) inputs.push_back(ones({}).set_requires_grad(true));
  meter.start();
  (void)grad({sum_of(inputs)}, inputs);
  meter.stop();
}

void unbind_and_back(int64_t count, Meter& meter) {
  const Tensor whole = ones({count}).set_requires_grad(true);
  meter.start();
  backward({sum_of(unbind(whole))});
  meter.stop();
}

void record(int64_t count, Meter& meter) {
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  const CompiledTensorFunction chain = compile(
      [count](const Tensor& x) {
        Tensor y = x;
        for (int64_t i = 0; i < count; ++i) y = i % 2 == 0 ? tanh(y) : y.mul(x);
        return y;
      },
      options);
  const Tensor x = ones({16}).set_requires_grad(true);
  meter.start();
  (void)chain(x);
  meter.stop();
}

}  // namespace

std::vector<GrowthCase> graph_cases() {
  return {{"inputs", "inputs of grad", 12'500, false, differentiate},
          {"unbind", "parts, and backward", 12'500, false, unbind_and_back},
          {"record", "operators of a compiled function", 1'000, false, record}};
}

}  // namespace lockstep::growth
