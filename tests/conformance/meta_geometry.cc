#include "tests/conformance/meta_geometry.h"

#include "autograd/autograd.h"
#include "core/base/check.h"
#include "tests/conformance/call_arguments.h"
#include "tests/conformance/recorded_call.h"

namespace lockstep::conformance {

namespace {

std::string geometry(const Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  return fmt::format("{}{} strides {}", to_string(tensor.dtype()), tensor.shape(),
                     to_string(tensor.strides()));
}

/// Calls a case's operator on one device and prepares its gradients.
class CallOn {
 public:
  CallOn(const Operator& op, const Case& one, const CaseFile& file, Device device) : op_(op) {
    const std::vector<Value> recorded = call_arguments(op.schema(), one, file);
    arguments_ = map_tensors(recorded,
                             [&](const Tensor& t) { return laid_out_alike(t, t.dtype(), device); });
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (op.schema().arguments[i].type.base == BaseType::kDevice) arguments_[i] = Value(device);
    }
    for (const ExpectedGradient& gradient : one.gradients) {
      inputs_.push_back(differentiated(op.schema(), arguments_, gradient));
      inputs_.back().set_requires_grad();
    }
    results_ = call(op_, arguments_);
  }

  const std::vector<Value>& results() const { return results_; }

  /// Gradients in the order of the expected ones; undefined ones are zero.
  std::vector<Tensor> gradients(const Case& one) const {
    std::vector<Tensor> outputs;
    std::vector<Tensor> cotangents;
    for (const auto& [index, value] : one.cotangents) {
      const Tensor& output = results_.at(index).tensor();
      outputs.push_back(output);
      cotangents.push_back(empty_tensor(output.sizes(), output.dtype(), output.device()));
    }
    GradOptions options;
    options.allow_unused = true;
    return grad(outputs, inputs_, cotangents, options);
  }

 private:
  const Operator& op_;
  std::vector<Value> arguments_;
  std::vector<Tensor> inputs_;
  std::vector<Value> results_;
};

void expect_same(const std::string& what, const Tensor& got, const Tensor& want) {
  LS_CHECK(geometry(got) == geometry(want), conformance::Disagreement,
           "{} on meta: expected {} as on cpu, got {}", what, geometry(want), geometry(got));
  LS_CHECK(!got.defined() || got.device() == kMeta, conformance::Disagreement,
           "{} is on {}, not on meta", what, to_string(got.device()));
}

/// Returns the tensor, or an undefined one if the result is a list, a number, or absent.
Tensor tensor_of(const Value& value) { return value.is_tensor() ? value.tensor() : Tensor(); }

void check_recorded(const std::string& what, const Tensor& got, const Case& one, size_t i,
                    const CaseFile& file) {
  if (one.outputs[i].kind != CaseValue::Kind::kTensor) return;
  LS_CHECK(got.defined(), conformance::Disagreement, "{}: expected a tensor, got nothing", what);
  const Tensor want = file.tensor(one.outputs[i]);
  LS_CHECK(same(got.sizes(), want.sizes()), conformance::Disagreement,
           "{}: shape: expected {}, got {}", what, want.shape(), got.shape());
  LS_CHECK(to_string(got.dtype()) == one.output_dtypes[i], conformance::Disagreement,
           "{}: dtype: expected {}, got {}", what, one.output_dtypes[i], to_string(got.dtype()));
}

void compare(const CallOn& meta, const CallOn& real, const Operator& op, const Case& one,
             const CaseFile& file) {
  LS_CHECK(meta.results().size() == one.outputs.size(), conformance::Disagreement,
           "expected {} outputs, got {}", one.outputs.size(), meta.results().size());
  for (size_t i = 0; i < one.outputs.size(); ++i) {
    const std::string what = fmt::format("output {}", i);
    const Tensor got = tensor_of(meta.results()[i]);
    check_recorded(what, got, one, i, file);
    expect_same(what, got, tensor_of(real.results()[i]));
  }
  if (one.gradients.empty()) return;
  const std::vector<Tensor> got = meta.gradients(one);
  const std::vector<Tensor> want = real.gradients(one);
  for (size_t i = 0; i < got.size(); ++i) {
    const ExpectedGradient& gradient = one.gradients[i];
    expect_same("gradient of " + gradient_name(op.schema(), gradient), got[i], want[i]);
  }
}

}  // namespace

std::optional<std::string> check_geometry(const Operator& op, const Case& one,
                                          const CaseFile& file) {
  const CallOn real(op, one, file, kCPU);
  const bool by_values = op.kind() == OpKind::kDynamic || op.kind() == OpKind::kHostValue;
  try {
    const CallOn meta(op, one, file, kMeta);
    LS_CHECK(!by_values, conformance::Disagreement,
             "meta gave a result that depends on values: it cannot know it");
    compare(meta, real, op, one, file);
  } catch (const DispatchError& error) {
    if (by_values) return "the result depends on values";
    const bool reads =
        std::string_view(error.what()).find("cannot run on meta") != std::string::npos;
    if (op.kind() == OpKind::kComposite && reads) return "the body reads values";
    throw;
  }
  return std::nullopt;
}

}  // namespace lockstep::conformance
