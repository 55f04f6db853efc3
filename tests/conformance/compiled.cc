#include "tests/conformance/compiled.h"

#include <cstring>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/generator.h"
#include "tests/conformance/call_arguments.h"
#include "tests/conformance/recorded_call.h"

namespace lockstep::conformance {

namespace {

/// A case's call as a function of its tensors.
struct Call {
  const Operator& op;
  std::vector<Value> arguments;
  std::vector<Tensor> tensors;  ///< the arguments' own, in order
  std::vector<Tensor> leaves;   ///< those that gradients are for

  Call(const Operator& called, const Case& one, const CaseFile& file, Device device)
      : op(called),
        arguments(on_device(op.schema(), call_arguments(op.schema(), one, file), device)) {
    for (const ExpectedGradient& gradient : one.gradients) {
      leaves.push_back(differentiated(op.schema(), arguments, gradient));
      leaves.back().set_requires_grad();
    }
    for (const Value& argument : arguments) {
      each_defined_tensor(argument, [&](const Tensor& tensor) { tensors.push_back(tensor); });
    }
  }

  std::vector<Tensor> operator()(TensorList inputs) const {
    size_t next = 0;
    std::vector<Value> replaced =
        map_tensors(arguments, [&](const Tensor&) { return inputs[next++]; });
    std::vector<Tensor> results;
    for (Value& result : conformance::call(op, replaced)) {
      if (result.is_tensor()) results.push_back(result.take_tensor());
    }
    return results;
  }
};

/// Layouts may differ where `any_layout`: eager backward may overwrite a gradient that it owns, and
/// then keeps its strides.
void check_equal(const std::string& what, const Tensor& got, const Tensor& want,
                 bool any_layout = false) {
  LS_CHECK(got.defined() == want.defined(), conformance::Disagreement,
           "{}: one of the two is undefined", what);
  if (!got.defined()) return;
  LS_CHECK(got.dtype() == want.dtype() && same(got.sizes(), want.sizes()) &&
               (any_layout || same(got.strides(), want.strides())),
           conformance::Disagreement, "{}: expected {} {} strides {}, got {} {} strides {}", what,
           to_string(want.dtype()), want.shape(), to_string(want.strides()), to_string(got.dtype()),
           got.shape(), to_string(got.strides()));
  const Tensor a = moved_to(kCPU, got.detach()).contiguous();
  const Tensor b = moved_to(kCPU, want.detach()).contiguous();
  LS_CHECK(a.nbytes() == 0 || std::memcmp(a.data(), b.data(), a.nbytes()) == 0,
           conformance::Disagreement, "{}: its bits differ", what);
}

/// The gradients of the leaves, weighted by ones: what they are is checked against the case
/// elsewhere.
std::vector<Tensor> gradients(const std::vector<Tensor>& outputs,
                              const std::vector<Tensor>& leaves) {
  std::vector<Tensor> roots;
  std::vector<Tensor> weights;
  for (const Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    roots.push_back(output);
    weights.push_back(ones_like(output));
  }
  if (roots.empty()) return {};
  return grad(roots, leaves, weights, {.allow_unused = true});
}

void check_call(const std::string& what, const Call& call, const std::vector<Tensor>& results,
                const Call& eager, const std::vector<Tensor>& wanted,
                const std::vector<Tensor>& wanted_gradients) {
  LS_CHECK(results.size() == wanted.size(), conformance::Disagreement,
           "{}: expected {} results, got {}", what, wanted.size(), results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    check_equal(fmt::format("{}: output {}", what, i), results[i], wanted[i]);
  }
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    check_equal(fmt::format("{}: tensor argument {}", what, i), call.tensors[i], eager.tensors[i]);
  }
  if (call.leaves.empty()) return;
  const std::vector<Tensor> got = gradients(results, call.leaves);
  LS_CHECK(got.size() == wanted_gradients.size(), conformance::Disagreement,
           "{}: results of one of the two do not require grad", what);
  for (size_t i = 0; i < got.size(); ++i) {
    check_equal(fmt::format("{}: gradient {}", what, i), got[i], wanted_gradients[i], true);
  }
}

}  // namespace

std::string check_compiled(const Operator& op, const Case& one, const CaseFile& file,
                           Device device) {
  const Call eager(op, one, file, device);
  const std::vector<Tensor> wanted = eager(eager.tensors);
  const std::vector<Tensor> wanted_gradients =
      eager.leaves.empty() ? std::vector<Tensor>() : gradients(wanted, eager.leaves);
  const Call recorded(op, one, file, device);
  const CompiledFunction compiled = compile([&](TensorList inputs) { return recorded(inputs); });
  check_call("while recorded", recorded, compiled(recorded.tensors), eager, wanted,
             wanted_gradients);
  const Call replayed(op, one, file, device);
  manual_seed(7);
  check_call("compiled", replayed, compiled(replayed.tensors), eager, wanted, wanted_gradients);
  if (compiled.counts().replayed == 1) return "";
  const std::vector<std::string> reasons = compiled.reasons();
  return reasons.empty() ? "run eagerly" : reasons.front();
}

}  // namespace lockstep::conformance
