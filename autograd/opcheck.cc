#include "autograd/opcheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep {

namespace {

using Arguments = std::vector<Value>;

Tensor laid_out(const Tensor& tensor, IntList strides, DType dtype) {
  const NoGradGuard guard;
  const Tensor copy = empty_strided_tensor(tensor.sizes(), strides, dtype, tensor.device());
  copy.copy_(tensor);
  return copy;
}

/// A copy of the elements with the same strides if these are dense, else row-major.
Tensor copy_of(const Tensor& tensor) {
  const bool dense = is_dense(tensor.sizes(), tensor.strides());
  const Dims rows = contiguous_strides(tensor.sizes());
  return laid_out(tensor, dense ? tensor.strides() : IntList(rows), tensor.dtype());
}

/// A copy of the tensor, cast to `dtype` if it is floating.
Tensor as_dtype(const Tensor& tensor, DType dtype) {
  if (!is_floating(tensor.dtype())) return copy_of(tensor);
  return laid_out(tensor, contiguous_strides(tensor.sizes()), dtype);
}

Tensor column_by_column(const Tensor& tensor) {
  Dims strides(tensor.sizes().size());
  int64_t step = 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    strides[i] = step;
    step *= tensor.sizes()[i];
  }
  return laid_out(tensor, strides, tensor.dtype());
}

std::vector<Tensor> run(const Operator& op, Arguments& arguments) {
  Stack stack(arguments);
  op.call_boxed(stack);
  std::vector<Tensor> tensors;
  for (const Value& value : stack.results()) {
    each_tensor(value, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

bool takes_a_generator(const Operator& op) {
  const std::vector<Argument>& arguments = op.schema().arguments;
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Argument& a) { return a.type.base == BaseType::kGenerator; });
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  const std::byte* data = static_cast<const std::byte*>(storage.data());
  return data == nullptr ? std::vector<std::byte>() : std::vector(data, data + storage.bytes());
}

double element_value(const Tensor& tensor, int64_t index) {
  const Tensor flat = tensor.to(DType::kF64).contiguous();
  return flat.data<double>()[index];
}

/// Describes the difference between two computations of one result; empty if they agree.
std::string difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (got.defined() != want.defined()) return "one is absent";
  if (!got.defined()) return "";
  if (!same(got.sizes(), want.sizes()) || got.dtype() != want.dtype()) {
    return fmt::format("expected {}, got {}", to_string(want), to_string(got));
  }
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double have = element_value(got, i);
    const double expected = element_value(want, i);
    const bool close = have == expected || (std::isnan(have) && std::isnan(expected)) ||
                       std::abs(have - expected) <= tolerance * (1 + std::abs(expected));
    if (!close) return fmt::format("element {}: expected {}, got {}", i, expected, have);
  }
  return "";
}

/// The checks of one sample.
class SampleCheck {
 public:
  SampleCheck(const Operator& op, Arguments arguments, const OpcheckOptions& options)
      : op_(op), arguments_(std::move(arguments)), options_(options) {}

  /// Calls `report(check, problem)` for each problem.
  template <class F>
  void run_all(F&& report) {
    const auto check = [&](const char* name, void (SampleCheck::*body)()) {
      problems_.clear();
      try {
        (this->*body)();
      } catch (const std::exception& error) {
        problems_.push_back(fmt::format("threw: {}", error.what()));
      }
      for (const std::string& problem : problems_) report(name, problem);
    };
    check("mutation", &SampleCheck::check_mutation);
    check("aliasing", &SampleCheck::check_aliasing);
    check("rule", &SampleCheck::check_rule);
    if (takes_a_generator(op_)) return;
    check("strides", &SampleCheck::check_strides);
    check("derivative", &SampleCheck::check_derivative);
    check("batching", &SampleCheck::check_batching);
    check("autocast", &SampleCheck::check_autocast);
  }

 private:
  template <class... A>
  void problem(fmt::format_string<A...> format, A&&... arguments) {
    problems_.push_back(fmt::format(format, std::forward<A>(arguments)...));
  }

  const Argument& argument(size_t i) const { return op_.schema().arguments[i]; }

  void check_mutation() {
    Arguments arguments = map_tensors(arguments_, copy_of);
    std::vector<std::vector<std::byte>> before;
    std::vector<uint32_t> versions;
    for (const Value& value : arguments) {
      each_tensor(value, [&](const Tensor& tensor) {
        before.push_back(tensor.defined() ? bytes_of(tensor) : std::vector<std::byte>());
        versions.push_back(tensor.defined() ? tensor.version() : 0);
      });
    }
    const NoGradGuard guard;
    run(op_, arguments);
    size_t next = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      each_tensor(arguments[i], [&](const Tensor& tensor) {
        const size_t at = next++;
        if (!tensor.defined() || bytes_of(tensor) == before[at]) return;
        if (!argument(i).written) {
          problem("{} changes, which the schema does not mark: expected Tensor(a!) in {}.",
                  argument(i).name, op_.schema().to_string());
        } else if (tensor.version() == versions[at]) {
          problem("{} changes without counting a version, so autograd cannot see it.",
                  argument(i).name);
        }
      });
    }
  }

  bool may_alias(const Return& result, size_t i) const {
    return result.alias != 0 && result.alias == argument(i).alias;
  }

  void check_aliasing() {
    Arguments arguments = map_tensors(arguments_, copy_of);
    const NoGradGuard guard;
    Stack stack(arguments);
    op_.call_boxed(stack);
    for (size_t r = 0; r < stack.results().size(); ++r) {
      const Return& result = op_.schema().returns[r];
      each_tensor(stack.results()[r], [&](const Tensor& tensor) {
        if (!tensor.defined() || tensor.numel() == 0) return;
        for (size_t i = 0; i < arguments.size(); ++i) {
          each_tensor(arguments[i], [&](const Tensor& other) {
            const bool shared = other.defined() && other.storage() == tensor.storage();
            if (!shared || may_alias(result, i)) return;
            problem("result {} shares memory with {}, which the schema does not say: {}.", r,
                    argument(i).name, op_.schema().to_string());
          });
        }
        for (size_t other = 0; other < r; ++other) {
          if (result.alias != 0) continue;
          each_tensor(stack.results()[other], [&](const Tensor& before) {
            if (before.defined() && before.storage() == tensor.storage()) {
              problem("results {} and {} share memory.", other, r);
            }
          });
        }
      });
    }
  }

  void check_rule() {
    if (op_.kind() == OpKind::kDynamic || op_.kind() == OpKind::kHostValue) return;
    Arguments real = map_tensors(arguments_, copy_of);
    Arguments meta = map_tensors(real, [](const Tensor& t) {
      return empty_strided_tensor(t.sizes(), t.strides(), t.dtype(), kMeta);
    });
    for (Value& value : meta) {
      if (value.tag() == Value::Tag::kDevice) value = Value(kMeta);
    }
    const NoGradGuard guard;
    const std::vector<Tensor> want = run(op_, real);
    const DefaultDeviceGuard device(kMeta);
    const std::vector<Tensor> got = run(op_, meta);
    if (got.size() != want.size()) {
      return problem("gives {} results on meta and {} with elements.", got.size(), want.size());
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const bool both = got[i].defined() && want[i].defined();
      const bool equal = both ? same(got[i].sizes(), want[i].sizes()) &&
                                    same(got[i].strides(), want[i].strides()) &&
                                    got[i].dtype() == want[i].dtype()
                              : got[i].defined() == want[i].defined();
      if (equal) continue;
      problem("result {} differs: on meta {}, with elements {}.", i, described(got[i]),
              described(want[i]));
    }
  }

  static std::string described(const Tensor& tensor) {
    if (!tensor.defined()) return "absent";
    return fmt::format("{}{} with strides {}", to_string(tensor.dtype()), tensor.shape(),
                       to_string(tensor.strides()));
  }

  void compare(const char* what, const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
    if (got.size() != want.size()) {
      return problem("{}: expected {} results, got {}.", what, want.size(), got.size());
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string found = difference(got[i], want[i], options_.tolerance);
      if (!found.empty()) problem("{}: result {}: {}.", what, i, found);
    }
  }

  void check_strides() {
    if (op_.kind() != OpKind::kStructured) return;
    const NoGradGuard guard;
    Arguments rows = map_tensors(arguments_, copy_of);
    Arguments columns = map_tensors(arguments_, column_by_column);
    const std::vector<Tensor> want = run(op_, rows);
    compare("arguments that lie column by column", run(op_, columns), want);
  }

  bool is_checked(const Tensor& tensor) const {
    return tensor.defined() && is_floating(tensor.dtype());
  }

  void check_derivative() {
    if (op_.form() == OpForm::kOut) return;
    const bool composite = op_.kind() == OpKind::kComposite;
    const std::string& reason = op_.derivative().not_differentiable_reason;
    std::vector<Tensor> inputs;
    for (const Value& value : arguments_) {
      each_tensor(value, [&](const Tensor& tensor) {
        if (tensor.defined()) inputs.push_back(as_dtype(tensor, DType::kF64));
      });
    }
    bool any = false;
    for (const Tensor& input : inputs) any |= is_checked(input);
    if (!any || !reason.empty()) return;
    const TensorsFunction function = [this](TensorList given) {
      size_t next = 0;
      Arguments arguments = map_tensors(
          arguments_, [&](const Tensor&) { return fresh_where_written(given[next++]); });
      return run(op_, arguments);
    };
    if (!op_.derivative().exists() && !composite) {
      const NoGradGuard guard;
      const std::vector<Tensor> results = function(inputs);
      if (std::any_of(results.begin(), results.end(),
                      [&](const Tensor& t) { return is_checked(t); })) {
        problem("there is none, and no reason is given.");
      }
      return;
    }
    for (const Tensor& input : inputs) {
      if (is_checked(input)) input.set_requires_grad();
    }
    gradcheck(function, inputs, options_.gradcheck);
    if (options_.second_derivative) gradgradcheck(function, inputs, options_.gradcheck);
  }

  /// A clone if the operator changes arguments: a leaf must not be changed in place.
  Tensor fresh_where_written(const Tensor& tensor) const {
    return op_.schema().is_mutable() ? tensor.clone() : tensor;
  }

  /// A batch of two samples: the tensor and half of it, so that mixed-up samples are detected.
  static Tensor batch_of(const Tensor& tensor) {
    Dims sizes{2};
    sizes.append(tensor.sizes().begin(), tensor.sizes().end());
    const Tensor batch = empty_tensor(sizes, tensor.dtype(), tensor.device());
    batch.select(0, 0).copy_(tensor);
    batch.select(0, 1).copy_(tensor);
    if (is_floating(tensor.dtype())) batch.select(0, 1).mul_(full_like(tensor, 0.5));
    return batch;
  }
  static Tensor full_like(const Tensor& tensor, double value) {
    const Tensor full = empty_tensor({}, tensor.dtype(), tensor.device());
    full.fill_(value);
    return full;
  }

  void check_batching() {
    if (op_.batching() == nullptr) return;
    uint64_t all = 0;
    for (size_t i = 0; i < arguments_.size() && i < 64; ++i) {
      if (!arguments_[i].is_tensor()) continue;
      check_batching(uint64_t{1} << i);
      all |= uint64_t{1} << i;
    }
    if ((all & (all - 1)) != 0) check_batching(all);
  }

  void check_batching(uint64_t batched) {
    const NoGradGuard guard;
    const auto is_batched = [&](size_t i) { return i < 64 && ((batched >> i) & 1) != 0; };
    Arguments together = map_tensors(arguments_, copy_of);
    for (size_t i = 0; i < together.size(); ++i) {
      if (is_batched(i)) together[i] = Value(batch_of(together[i].tensor()));
    }
    Stack stack(together);
    op_.batching()(op_.root(), batched, stack);
    std::vector<Tensor> results;
    for (const Value& value : stack.results()) {
      each_tensor(value, [&](const Tensor& tensor) { results.push_back(tensor); });
    }
    for (int64_t b = 0; b < 2; ++b) {
      Arguments alone = map_tensors(arguments_, copy_of);
      for (size_t i = 0; i < alone.size(); ++i) {
        if (is_batched(i)) alone[i] = Value(batch_of(alone[i].tensor()).select(0, b).clone());
      }
      std::vector<Tensor> got;
      for (const Tensor& result : results) {
        const bool has_batch = result.defined() && result.dim() > 0 && result.size(0) == 2;
        got.push_back(has_batch ? result.select(0, b) : result);
      }
      compare(fmt::format("arguments {:#b} batched, element {}", batched, b).c_str(), got,
              run(op_, alone));
    }
  }

  void check_autocast() {
    const Autocast kind = op_.autocast();
    if (kind == Autocast::kNone) return;
    const NoGradGuard guard;
    bool first = true;
    Arguments arguments = map_tensors(arguments_, [&](const Tensor& tensor) {
      const bool lower = kind == Autocast::kLowerPrecision ||
                         (kind == Autocast::kPromote && first && is_floating(tensor.dtype()));
      if (is_floating(tensor.dtype())) first = false;
      return as_dtype(tensor, lower ? DType::kBF16 : DType::kF32);
    });
    run(op_, arguments);
  }

  const Operator& op_;
  const Arguments arguments_;
  const OpcheckOptions& options_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> opcheck(const Operator& op, std::span<const OpSample> samples,
                                 const OpcheckOptions& options) {
  std::vector<std::string> problems;
  for (size_t i = 0; i < samples.size(); ++i) {
    SampleCheck check(op, bind_arguments(op, samples[i].arguments, samples[i].named), options);
    check.run_all([&](const char* name, const std::string& problem) {
      problems.push_back(fmt::format("[{}] sample {}: {}: {}", op.name(), i, name, problem));
    });
  }
  return problems;
}

std::vector<std::string> opcheck(std::string_view op, std::span<const OpSample> samples,
                                 const OpcheckOptions& options) {
  return opcheck(dispatcher().find(op), samples, options);
}

}  // namespace lockstep
