// Every operator gives the same results under vmap as in a loop over the samples.

#include "autograd/vmap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/ops/operator_forms.h"

namespace lockstep {
namespace {

constexpr int64_t kSamples = 3;

double tolerance_of(const Arguments& arguments) {
  double tolerance = 1e-5;
  for (const Value& value : arguments) {
    each_defined_tensor(value, [&](const Tensor& tensor) {
      const bool half = is_floating(tensor.dtype()) && size_of(tensor.dtype()) == 2;
      if (half) tolerance = 2e-2;
    });
  }
  return tolerance;
}

/// A batch of the tensor and two variants. Integers are repeated, since they may be indices.
Tensor batch_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::kBool) return stack({tensor, logical_not(tensor), tensor});
  if (!is_floating(tensor.dtype())) return stack({tensor, tensor, tensor});
  return stack({tensor, (tensor * 0.875).to(tensor.dtype()), (tensor * 0.625).to(tensor.dtype())});
}

bool draws_random_numbers(const Operator& op) {
  const std::vector<Argument>& arguments = op.schema().arguments;
  const std::vector<std::string>& tags = op.tags();
  return op.schema().name.find("rand") != std::string::npos ||
         op.schema().name.find("dropout") != std::string::npos ||
         std::find(tags.begin(), tags.end(), "nondeterministic_seeded") != tags.end() ||
         std::any_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
           return argument.type.base == BaseType::kGenerator;
         });
}

bool is_tensors(const Value& value) {
  return value.is_tensor() || (value.is_tensor_list() &&
                               std::any_of(value.tensors().begin(), value.tensors().end(),
                                           [](const Tensor& tensor) { return tensor.defined(); }));
}

/// Compares one call with some arguments batched, under vmap, with calls sample by sample.
class Comparison {
 public:
  /// `batched` has one flag per argument.
  Comparison(const Operator& op, const Arguments& arguments, const std::vector<bool>& batched)
      : op_(op), arguments_(arguments), batched_(batched) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!batched[i]) continue;
      each(arguments[i], [&](const Tensor& tensor) { batches_.push_back(batch_of(tensor)); });
    }
  }

  /// Compares the gradients of all batched arguments. Returns the difference, or "".
  std::string run_backward(double tolerance) const {
    const std::vector<Tensor> leaves = copies();
    for (const Tensor& leaf : leaves) {
      if (is_floating(leaf.dtype())) leaf.set_requires_grad();
    }
    Results want;
    try {
      std::vector<std::vector<Tensor>> each;
      for (int64_t k = 0; k < kSamples; ++k) {
        std::vector<Tensor> samples;
        for (const Tensor& leaf : leaves) samples.push_back(leaf.select(0, k).clone());
        each.push_back(floating(call(samples)));
      }
      std::vector<Tensor> stacked;
      for (size_t i = 0; i < each[0].size(); ++i) {
        stacked.push_back(stack({each[0][i], each[1][i], each[2][i]}));
      }
      want.tensors = gradients(stacked, leaves);
    } catch (const Error&) {
      return "";
    }
    std::vector<Tensor> whole;  // copies, as leaves must not be written
    for (const Tensor& leaf : leaves) whole.push_back(leaf.clone());
    const std::vector<Tensor> together =
        vmap([&](TensorList samples) { return floating(call(samples)); }, whole);
    return difference({gradients(together, leaves)}, want, tolerance);
  }

  /// Compares two levels of vmap with one. Returns the difference, or "".
  std::string run_nested(double tolerance) const {
    std::vector<Tensor> twice;
    for (const Tensor& batch : copies()) twice.push_back(stack({batch, batch}));
    const auto inner = [&](TensorList samples) { return defined(call(samples)); };
    std::vector<Tensor> once;
    try {
      once = vmap(inner, copies());
    } catch (const Error&) {
      return "";
    }
    const std::vector<Tensor> nested =
        vmap([&](TensorList batches) { return vmap(inner, batches); }, twice);
    for (int64_t k = 0; k < 2; ++k) {
      Results got;
      for (const Tensor& result : nested) got.tensors.push_back(result.select(0, k));
      const std::string found = difference(got, {once}, tolerance);
      if (!found.empty()) return found;
    }
    return "";
  }

  /// Compares the results. Returns the difference, or "", also when the call fails for a single
  /// sample.
  std::string run(bool unspecified_values, double tolerance) const {
    std::vector<Results> alone;
    for (int64_t k = 0; k < kSamples; ++k) {
      std::vector<Tensor> samples;
      for (const Tensor& batch : batches_) samples.push_back(batch.select(0, k).clone());
      try {
        alone.push_back(call(samples));
      } catch (const Error&) {
        return "";
      }
    }
    std::vector<bool> defined;
    const std::vector<Tensor> together = vmap(
        [&](TensorList samples) {
          std::vector<Tensor> results;
          for (const Tensor& result : call(samples).tensors) {
            defined.push_back(result.defined());
            if (result.defined()) results.push_back(result);
          }
          return results;
        },
        copies());
    for (int64_t k = 0; k < kSamples; ++k) {
      Results sample;
      size_t next = 0;
      for (const bool is_defined : defined) {
        sample.tensors.push_back(is_defined ? together[next++].select(0, k) : Tensor());
      }
      if (unspecified_values) {
        for (size_t i = 0; i < sample.tensors.size(); ++i) {
          if (!same(sample.tensors[i].sizes(), alone[static_cast<size_t>(k)].tensors[i].sizes())) {
            return "another shape";
          }
        }
        continue;
      }
      const std::string found = difference(sample, alone[static_cast<size_t>(k)], tolerance);
      if (!found.empty()) return "sample " + std::to_string(k) + ": " + found;
    }
    return "";
  }

 private:
  static std::vector<Tensor> defined(const Results& results) {
    std::vector<Tensor> kept;
    for (const Tensor& result : results.tensors) {
      if (result.defined()) kept.push_back(result);
    }
    return kept;
  }
  static std::vector<Tensor> floating(const Results& results) {
    std::vector<Tensor> kept;
    for (const Tensor& result : defined(results)) {
      if (is_floating(result.dtype())) kept.push_back(result);
    }
    return kept;
  }
  /// Gradients of all floating leaves; zeros for a leaf that no output depends on.
  static std::vector<Tensor> gradients(const std::vector<Tensor>& outputs,
                                       const std::vector<Tensor>& leaves) {
    std::vector<Tensor> inputs, roots, weights;
    for (const Tensor& leaf : leaves) {
      if (leaf.requires_grad()) inputs.push_back(leaf);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      weights.push_back(floats(outputs[i].sizes(), static_cast<int>(i) + 5, outputs[i].dtype()));
    }
    if (roots.empty()) {
      for (Tensor& input : inputs) input = zeros_like(input);
      return inputs;
    }
    GradOptions options;
    options.allow_unused = true;
    options.materialize_grads = true;
    return grad(roots, inputs, weights, options);
  }

  template <class F>
  static void each(const Value& value, F&& visit) {
    if (value.is_tensor()) return visit(value.tensor());
    for (const Tensor& tensor : value.tensors()) {
      if (tensor.defined()) visit(tensor);
    }
  }

  std::vector<Tensor> copies() const {
    std::vector<Tensor> copies;
    for (const Tensor& batch : batches_) copies.push_back(batch.clone());
    return copies;
  }

  /// Calls the operator with `samples` in place of the batched arguments.
  Results call(TensorList samples) const {
    size_t next = 0;
    Arguments arguments;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      arguments.push_back(map_tensors(arguments_[i], [&](const Tensor& tensor) {
        return batched_[i] ? samples[next++] : cast_copy(tensor, tensor.dtype());
      }));
    }
    return call_operator(op_, arguments);
  }

  const Operator& op_;
  const Arguments& arguments_;
  const std::vector<bool>& batched_;
  std::vector<Tensor> batches_;
};

/// Calls `check(comparison)` with each tensor argument batched alone, and with all batched.
/// Arguments flagged in `always` are batched every time. `check` returns an error, or "".
void compare(const Operator& op, const Arguments& arguments, const std::vector<bool>& always,
             const std::function<std::string(const Comparison&)>& check) {
  std::vector<std::vector<bool>> choices;
  std::vector<bool> all(arguments.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!is_tensors(arguments[i])) continue;
    all[i] = true;
    std::vector<bool> one = always;
    one[i] = true;
    if (std::find(choices.begin(), choices.end(), one) == choices.end()) choices.push_back(one);
  }
  if (choices.empty()) return;
  if (std::find(choices.begin(), choices.end(), all) == choices.end()) choices.push_back(all);
  for (const std::vector<bool>& batched : choices) {
    std::string names;
    for (size_t i = 0; i < batched.size(); ++i) {
      if (batched[i]) names += op.schema().arguments[i].name + " ";
    }
    SCOPED_TRACE("batched: " + names);
    try {
      EXPECT_EQ(check(Comparison(op, arguments, batched)), "");
    } catch (const AutogradError& error) {
      const bool refused =
          std::string_view(error.what()).find("as many elements as") != std::string_view::npos ||
          std::string_view(error.what()).find("cannot get other memory") !=
              std::string_view::npos ||
          std::string_view(error.what()).find("returns one number") != std::string_view::npos;
      if (!refused) ADD_FAILURE() << error.what();
    }
  }
}

bool is_batchable(const Operator& op) {
  return op.kind() != OpKind::kDynamic && op.kind() != OpKind::kHostValue &&
         !draws_random_numbers(op);
}

/// Calls `check(samples, comparison, tolerance)` for all samples of all operators.
void compare_all(
    const std::function<std::string(const OpSamples&, const Comparison&, double)>& check) {
  for_each_operator([&](const Operator& op, const OpSamples& samples) {
    if (!is_batchable(op)) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      const Arguments arguments = arguments_of(op, sample);
      std::vector<bool> written;
      for (const Argument& argument : op.schema().arguments) written.push_back(argument.written);
      compare(op, arguments, written, [&](const Comparison& comparison) {
        return check(samples, comparison, tolerance_of(arguments));
      });
    });
  });
}

TEST(VmapOfOperators, EqualsALoop) {
  const NoGradGuard guard;
  compare_all([](const OpSamples& samples, const Comparison& comparison, double tolerance) {
    return comparison.run(samples.unspecified_values, tolerance);
  });
}

TEST(VmapOfOperators, HasTheGradientsOfALoop) {
  compare_all([](const OpSamples& samples, const Comparison& comparison, double tolerance) {
    return samples.unspecified_values ? "" : comparison.run_backward(10 * tolerance);
  });
}

TEST(VmapOfOperators, NestedEqualsOneLevel) {
  const NoGradGuard guard;
  compare_all([](const OpSamples& samples, const Comparison& comparison, double tolerance) {
    return samples.unspecified_values ? "" : comparison.run_nested(tolerance);
  });
}

TEST(VmapOfOperators, InPlaceFormsWriteIntoEverySample) {
  const NoGradGuard guard;
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    if (!is_batchable(op)) return;
    for (const WritingForm& form : writing_forms(op)) {
      if (!form.in_place) continue;
      SCOPED_TRACE(form.op->name());
      for_each_sample(samples.calls, [&](const Sample& sample) {
        const std::optional<Arguments> arguments = form.arguments(op, arguments_of(op, sample));
        if (!arguments) return;
        std::vector<bool> self(arguments->size(), false);
        self[0] = true;
        compare(*form.op, *arguments, self, [&](const Comparison& comparison) {
          return comparison.run(samples.unspecified_values, tolerance_of(*arguments));
        });
      });
    }
  });
}

TEST(VmapOfOperators, EveryViewHasARule) {
  for (const Operator* op : functional_operators()) {
    if (op->kind() == OpKind::kView) {
      EXPECT_NE(op->batching(), nullptr) << op->name();
    }
  }
}

}  // namespace
}  // namespace lockstep
