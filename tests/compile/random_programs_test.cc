// Random programs of operators, views, in-place changes and casts, compiled and as they are.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/native/toolchain.h"
#include "compile/program.h"
#include "core/base/error.h"
#include "core/dispatch/element_loop.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/view/stacks.h"
#include "core/tensor/generator.h"
#include "tests/compile/same_bytes.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/device/every_device.h"

namespace lockstep {
namespace {

/// One step: an operation on two of the tensors so far.
struct Step {
  int operation = 0;
  int first = 0;
  int second = 0;
  int parameter = 0;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << step.operation << "(" << step.first << ", " << step.second << ", " << step.parameter
             << ")";
}

bool can_broadcast(const Tensor& a, const Tensor& b) {
  const auto rank = std::min(a.dim(), b.dim());
  for (int64_t i = 1; i <= rank; ++i) {
    if (a.size(-i) != b.size(-i) && a.size(-i) != 1 && b.size(-i) != 1) return false;
  }
  return true;
}

int64_t dim_of(const Tensor& x, int parameter) { return x.dim() == 0 ? 0 : parameter % x.dim(); }

constexpr int kOperations = 26;
constexpr int kFirstRead = 24;  ///< operations that read values on the host come last

/// The tensor that the step makes or changes. Operands that do not fit are made to.
Tensor perform(const Step& step, const Tensor& a, const Tensor& other) {
  const int parameter = step.parameter;
  const Tensor b = can_broadcast(a, other) && a.dim() + other.dim() < 6 ? other : other.sum();
  const int64_t dim = dim_of(a, parameter);
  const bool is_real = is_floating(a.dtype());
  const Tensor real = is_real ? a : a.to(DType::kF32);
  const bool writable = !may_self_overlap(a.sizes(), a.strides()) && is_real;
  switch (step.operation) {
    case 0:
      return real.tanh();
    case 1:
      return a.dtype() == DType::kBool ? a.logical_not() : a.neg();
    case 2:
      return real.sigmoid();
    case 3:
      return a.add(b);
    case 4:
      return a.mul(b);
    case 5:
      return real.sub(b.to(DType::kF32), 0.5);
    case 6:
      return a.gt(b);
    case 7:
      return real.maximum(b.to(real.dtype()));
    case 8:
      return writable ? a.add_(parameter * 0.25) : a.to(DType::kF64);
    case 9:
      return writable ? a.relu_() : a.abs();
    case 10:
      // Detached: a change of a tensor by what was computed from it keeps itself alive where
      // backward refuses it, compiled or not.
      return writable && b.dim() == 0 ? a.mul_(b.detach().to(a.dtype())) : a.sum();
    case 11:
      return writable && a.dim() > 0 ? a.select(dim, 0).fill_(parameter) : a;
    case 12:
      return a.dim() == 2 ? a.t() : a.reshape({-1});
    case 13:
      return a.dim() > 0 ? a.select(dim, parameter % a.size(dim)) : a;
    case 14:
      return a.dim() > 0 ? a.slice(dim, a.size(dim) / 2) : a;
    case 15:
      return a.dim() < 3 ? a.unsqueeze(0).expand([&] {
        Dims sizes = to_dims(a.unsqueeze(0).sizes());
        sizes[0] = 2;
        return sizes;
      }())
                         : a;
    case 16:
      return real.sum(a.dim() > 0 ? OptionalIntList(dim) : OptionalIntList(), parameter % 2 == 0);
    case 17:
      return a.dim() > 0 ? std::get<0>(real.max(dim)) : real.exp();
    case 18:
      return a.dim() > 0 ? softmax(real, dim) : real.mean();
    case 19:
      return a.to(parameter % 2 == 0 ? DType::kBF16 : DType::kF32);
    case 20:
      return a.dim() == 2 && is_real && a.dtype() != DType::kF16 ? a.mm(a.t()) : a.clone();
    case 21:
      return is_real && parameter % 3 == 0 ? dropout(a, 0.25, true) : a.to(DType::kI64).mul(3);
    case 22:
      return a.dim() > 0
                 ? a.index_select(
                       0,
                       arange(parameter + 1, {DType::kI64, a.device()}).mul(7).remainder(a.size(0)))
                 : a;
    case 23:
      return bernoulli(a, 0.125 * parameter);
    case 24:
      // Few values: there are programs for them.
      return real.sum().gt(0).item<bool>() ? real.mul(0.5).add(1) : a.neg();
    case 25:
      return parameter % 2 == 0 ? masked_select(a, a.gt(0)) : a.mul(real.sum().item<double>() > 1);
  }
  return a;
}

std::vector<Tensor> run_program(const std::vector<Step>& steps, TensorList inputs) {
  std::vector<Tensor> tensors;
  for (const Tensor& input : inputs) {
    // A leaf that requires grad must not change.
    tensors.push_back(input.requires_grad() ? input.clone() : input);
  }
  for (const Step& step : steps) {
    const auto count = static_cast<int>(tensors.size());
    const Tensor& a = tensors[static_cast<size_t>(step.first % count)];
    const Tensor& b = tensors[static_cast<size_t>(step.second % count)];
    if (a.numel() == 0 || a.numel() > 4096) continue;
    try {
      tensors.push_back(perform(step, a, b));
    } catch (const Error&) {
      // Refused: a dtype, or a change of a view that autograd forbids. Compiled it is, too.
    }
  }
  // The last few, as copies: a view of a changed argument is not recorded.
  std::vector<Tensor> results;
  for (size_t i = tensors.size() > 4 ? tensors.size() - 4 : 0; i < tensors.size(); ++i) {
    results.push_back(tensors[i].clone());
  }
  return results;
}

/// The same dtype, device, sizes and bits, in whatever order they lie.
bool same_values(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || (a.device() == b.device() && have_same_bytes(a.to(kCPU), b.to(kCPU)));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return same_values(a, b) && (!a.defined() || same(a.strides(), b.strides()));
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
}

/// Layouts may differ: eager backward may overwrite a gradient that it owns, and then keeps its
/// layout. Among contiguous ones, too: a dimension of one element has any stride.
bool same_values(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b,
                            [](const Tensor& x, const Tensor& y) { return same_values(x, y); });
}

std::vector<Tensor> inputs_of(int seed, bool require_grad, Device device = kCPU) {
  manual_seed(static_cast<uint64_t>(seed));
  std::vector<Tensor> inputs = {randn({3, 4}), randn({4}), randn({2, 3, 1}), randn({})};
  for (Tensor& input : inputs) input = input.to(device).set_requires_grad(require_grad);
  return inputs;
}

rc::Gen<std::vector<Step>> any_program() {
  const auto step =
      rc::gen::construct<Step>(rc::gen::inRange(0, kOperations), rc::gen::inRange(0, 64),
                               rc::gen::inRange(0, 64), rc::gen::inRange(0, 8));
  return rc::gen::mapcat(rc::gen::inRange<size_t>(5, 40), [step](size_t length) {
    return rc::gen::container<std::vector<Step>>(length, step);
  });
}

/// The gradients of the results that carry one, or nothing where backward refuses.
std::optional<std::vector<Tensor>> gradients(const std::vector<Tensor>& results,
                                             const std::vector<Tensor>& inputs) {
  std::vector<Tensor> roots;
  std::vector<Tensor> weights;
  for (const Tensor& result : results) {
    if (!result.requires_grad()) continue;
    roots.push_back(result);
    weights.push_back(ones_like(result));
  }
  if (roots.empty()) return std::vector<Tensor>();
  try {
    return grad(roots, inputs, weights, {.allow_unused = true});
  } catch (const AutogradError&) {
    return std::nullopt;  // a saved tensor was changed
  }
}

void expect_equal_bits(const std::vector<Step>& steps, bool require_grad, double budget = 1,
                       Device device = kCPU) {
  CompileOptions options;
  options.activation_budget = budget;
  options.kernels = KernelBuild::kNever;
  const CompiledFunction compiled =
      compile([&](TensorList inputs) { return run_program(steps, inputs); }, options);
  // What the host reads differs with the seed, so each has a program of its own where it does.
  for (const int seed : {1, 2, 3, 1, 2, 3}) {
    const std::vector<Tensor> mine = inputs_of(seed, require_grad, device);
    const std::vector<Tensor> theirs = inputs_of(seed, require_grad, device);
    manual_seed(99);
    const std::vector<Tensor> want = run_program(steps, theirs);
    manual_seed(99);
    const std::vector<Tensor> got = compiled(mine);
    RC_ASSERT(same_bits(got, want));
    RC_ASSERT(same_bits(mine, theirs));
    if (!require_grad) continue;
    const auto wanted = gradients(want, theirs);
    if (wanted) RC_ASSERT(same_values(gradients(got, mine).value(), *wanted));
  }
  const CompileCounts counts = compiled.counts();
  RC_TAG(counts.replayed < 3   ? compiled.reasons().front()
         : counts.replayed < 5 ? "compiled, split"
                               : "compiled");
}

RC_GTEST_PROP(RandomPrograms, CompiledGivesEqualBits, ()) {
  expect_equal_bits(*any_program(), false);
}

RC_GTEST_PROP(RandomPrograms, CompiledGivesEqualGradients, ()) {
  expect_equal_bits(*any_program(), true);
}

RC_GTEST_PROP(RandomPrograms, ComputedAgainGivesEqualGradients, ()) {
  const double budget = *rc::gen::elementOf(std::vector<double>{0, 0.3, 0.6, 0.9});
  expect_equal_bits(*any_program(), true, budget);
}

class RandomProgramsOnDevice : public EveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, RandomProgramsOnDevice, kEveryDevice, name_of_device);

TEST_P(RandomProgramsOnDevice, CompiledGivesEqualBitsAndGradients) {
  const Device device = this->device();
  EXPECT_TRUE(rc::check(
      [&] { expect_equal_bits(*any_program(), *rc::gen::arbitrary<bool>(), 1, device); }));
}

/// Operations behind `operations` are left out.
std::vector<Step> program_of(unsigned seed, int operations = kOperations) {
  std::mt19937 random(seed);
  std::vector<Step> steps;
  for (int k = 0; k < 20; ++k) {
    steps.push_back({static_cast<int>(random() % static_cast<unsigned>(operations)),
                     static_cast<int>(random() % 64), static_cast<int>(random() % 64),
                     static_cast<int>(random() % 8)});
  }
  return steps;
}

TEST(RandomPrograms, MostAreRecorded) {
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  int replayed = 0;
  for (unsigned i = 0; i < 20; ++i) {
    const std::vector<Step> steps = program_of(i);
    const CompiledFunction compiled =
        compile([&](TensorList inputs) { return run_program(steps, inputs); }, options);
    for (const int seed : {1, 2, 1, 2}) (void)compiled(inputs_of(seed, false));
    replayed += compiled.counts().replayed >= 2 ? 1 : 0;
  }
  EXPECT_GE(replayed, 15);
}

TEST_P(RandomProgramsOnDevice, KernelsGiveEqualBits) {
  if (!compiler::find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  if (loop_backend(device().type) == nullptr) return;  // no groups
  const train::TemporaryDirectory folder;
  const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", (folder.path() / "cache").c_str());
  CompileOptions options;
  options.kernels = KernelBuild::kAtOnce;
  int64_t groups = 0;
  const unsigned programs = device() == kCPU ? 6 : 3;
  for (unsigned i = 0; i < programs; ++i) {
    const std::vector<Step> steps = program_of(i, kFirstRead);
    const CompiledFunction compiled =
        compile([&](TensorList inputs) { return run_program(steps, inputs); }, options);
    for (const int seed : {1, 2, 1, 2}) {
      manual_seed(99);
      const std::vector<Tensor> want = run_program(steps, inputs_of(seed, false, device()));
      manual_seed(99);
      EXPECT_TRUE(same_bits(compiled(inputs_of(seed, false, device())), want)) << "program " << i;
    }
    for (const auto& program : compiled.programs()) {
      for (const compiler::GroupKernel* const kernel : program->kernels()) {
        ++groups;
        EXPECT_EQ(kernel->refusal(), "");
      }
    }
  }
  EXPECT_GE(groups, device() == kCPU ? 4 : 2);
}

}  // namespace
}  // namespace lockstep
