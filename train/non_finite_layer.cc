#include "train/non_finite_layer.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "autograd/grad_mode.h"
#include "core/base/current_scope.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/operator.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep::train {

namespace {

bool is_finite(const Tensor& tensor) {
  if (!is_floating(tensor.dtype()) || tensor.numel() == 0) return true;
  return all(isfinite(tensor)).item<bool>();
}

bool is_finite(const Value& value) {
  bool finite = true;
  each_defined_tensor(value, [&](const Tensor& tensor) { finite = finite && is_finite(tensor); });
  if (!finite) return false;
  if (value.tag() == Value::Tag::kScalar) return std::isfinite(value.to_scalar().to_double());
  return value.tag() != Value::Tag::kDouble || std::isfinite(value.to_double());
}

bool all_finite(std::span<const Value> values) {
  for (const Value& value : values) {
    if (!is_finite(value)) return false;
  }
  return true;
}

/// Remembers the first call that makes a number that is not finite from finite ones. A call that is
/// given one, such as masked_fill with -inf, only passes it on.
class FirstNonFinite : public DispatchMode {
 public:
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    const bool watched = found_.empty() && !op.allocates_only() && all_finite(stack.arguments());
    pass_on(op, keys, stack);
    if (!watched) return;
    const auto& results = stack.results();
    if (all_finite({results.data(), results.size()})) return;
    const std::string_view layer = current_module();
    found_ =
        fmt::format("layer {} computed numbers that are not finite from finite ones (operator {})",
                    layer.empty() ? "of the model itself" : layer, op.name());
  }
  const std::string& found() const { return found_; }

 private:
  std::string found_;
};

std::string first_held(std::string_view kind, const std::vector<nn::NamedParameter>& tensors) {
  for (const nn::NamedParameter& each : tensors) {
    if (is_finite(each.tensor)) continue;
    const int64_t finite = sum(isfinite(each.tensor).to(DType::kI64)).item<int64_t>();
    const int64_t others = each.tensor.numel() - finite;
    return fmt::format("{} {} holds {} number{} not finite", kind, each.name, others,
                       others == 1 ? " that is" : "s that are");
  }
  return "";
}

}  // namespace

std::string origin_of_non_finite(const nn::Module& model, const std::function<void()>& forward) {
  const NoGradGuard no_grad;
  if (std::string held = first_held("parameter", model.named_parameters()); !held.empty()) {
    return held;
  }
  if (std::string held = first_held("buffer", model.named_buffers()); !held.empty()) return held;
  FirstNonFinite first;
  {
    const ModeGuard guard(first);
    forward();
  }
  return first.found().empty() ? "all layers gave finite numbers when the pass was repeated"
                               : first.found();
}

}  // namespace lockstep::train
