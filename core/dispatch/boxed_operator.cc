#include "core/dispatch/boxed_operator.h"

#include "core/base/check.h"
#include "core/device/copies.h"
#include "core/dispatch/forms.h"
#include "core/dispatch/packed_launch.h"
#include "core/dispatch/value_tensors.h"
#include "core/tensor/inference_tensor.h"

namespace lockstep {

namespace {

using structured::Preparation;
using structured::ReadBack;
using structured::Target;

void missing(const Operator& op, KeySet keys, Stack&) { op.throw_missing(keys); }

void boxed(const Operator& op, KeySet keys, Stack& stack) {
  op.boxed_kernel(keys.highest())(op, keys, stack);
}

void body(const Operator& op, KeySet keys, Stack& stack) {
  reinterpret_cast<BoxedKernel>(op.definition())(op, keys, stack);
}

void observed(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys & KeySet::below(Key::kObserver);
  if (below.empty()) op.throw_missing(below);
  const ObservedCall call(op, below, stack);
  reinterpret_cast<BoxedKernel>(op.entry(below.highest()))(op, below, stack);
}

void traced(const Operator& op, KeySet keys, Stack& stack) {
  const TracedCall call(op, keys);
  reinterpret_cast<BoxedKernel>(op.cell(keys.highest()).entry)(op, keys, stack);
}

void unbox(const Operator& op, KeySet keys, AnyFunction entry, Stack& stack) {
  reinterpret_cast<BoxedKernel>(entry)(op, keys, stack);
}

/// The device option, else the device of all tensors, else the thread's default.
Device call_device(const Operator& op, std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.tag() == Value::Tag::kDevice) return value.to_device();
  }
  structured::CallDevice found;
  for (const Value& value : values) {
    each_defined_tensor(value, [&](const Tensor& tensor) { found.see(tensor); });
  }
  const Device device = found.get();
  for (const Value& value : values) {
    each_defined_tensor(
        value, [&](const Tensor& tensor) { structured::check_same_device(op, device, tensor); });
  }
  return device;
}

/// Returns whether the kernel reads `destination` through its arguments and if that is a hazard;
/// see structured::read_back.
ReadBack read_back(const Preparation& preparation, const Tensor& destination,
                   std::span<const Value> arguments) {
  const bool in_place = preparation.op.has_in_place();
  const bool elementwise = in_place && preparation.strides != Strides::kMatrix;
  ReadBack worst = ReadBack::kNo;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool safe = elementwise || (in_place && i == 0);
    each_defined_tensor(arguments[i], [&](const Tensor& tensor) {
      const auto found = structured::check_overlap(preparation.op, destination, tensor);
      worst = std::max(worst, structured::read_back(found, safe));
    });
  }
  return worst;
}

/// The arguments of one call as a packed kernel takes them.
class PackedArguments {
 public:
  PackedArguments(Preparation& preparation, std::span<const Value> values)
      : schema_(preparation.op.root().schema()), values_(values) {
    size_t tensors = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (schema_.arguments[i].type.base != BaseType::kTensor) continue;
      tensors += values[i].is_tensor_list() ? values[i].tensors().size() : 1;
    }
    ins_.reserve(tensors);  // the spans below must not move
    for (size_t i = 0; i < values.size(); ++i) add(preparation, i);
  }

  std::span<const PackedArgument> get() const { return {packed_.data(), packed_.size()}; }

  /// Writes changed copies back to the arguments they were made of and bumps the version counters
  /// of all written arguments.
  void finish(const Preparation& preparation) {
    if (preparation.execution != Execution::kShapes) {
      for (const Written& written : written_) {
        structured::copy_elements(preparation.backend, written.destination, written.copy);
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!schema_.arguments[i].written) continue;
      each_defined_tensor(values_[i],
                          [](const Tensor& tensor) { tensor.storage()->bump_version(); });
    }
  }

 private:
  struct Written {
    Tensor destination;
    Tensor copy;
  };

  void add(Preparation& preparation, size_t i) {
    const Value& value = values_[i];
    if (schema_.arguments[i].type.base != BaseType::kTensor) {
      packed_.emplace_back(value);
      return;
    }
    const size_t first = ins_.size();
    if (value.is_tensor_list()) {
      for (const Tensor& tensor : value.tensors()) add(preparation, i, tensor);
    } else {
      static const Tensor kAbsent;
      add(preparation, i, value.is_none() ? kAbsent : value.tensor());
    }
    ++preparation.ordinal;
    packed_.emplace_back(InList(ins_.data() + first, ins_.size() - first));
  }

  void add(const Preparation& preparation, size_t i, const Tensor& tensor) {
    In& in = ins_.emplace_back();
    if (!tensor.defined()) return;
    const bool cast = ((preparation.cast_mask >> preparation.ordinal) & 1) != 0;
    const std::optional<DType> compute = cast ? preparation.compute : std::nullopt;
    const bool written = schema_.arguments[i].written;
    if (written) check_writable(preparation.op, i, tensor);
    const bool as_it_is = structured::acceptable(preparation, *tensor.impl(), compute) &&
                          (written ? !may_self_overlap(tensor.sizes(), tensor.strides())
                                   : !changes_with_another(preparation.op, tensor));
    if (as_it_is) {
      in.refer_to(*tensor.impl());
      return;
    }
    const Tensor& copy = copies_.emplace_back(structured::converted(preparation, tensor, cast));
    in.refer_to(*copy.impl());
    if (written) written_.push_back({tensor, copy});
  }

  void check_writable(const Operator& op, size_t i, const Tensor& tensor) const {
    check_inference_write(op.name(), tensor);
    LS_CHECK(!structured::repeats_elements(*tensor.impl()), ShapeError,
             "[{}] the elements of {} overlap (an expanded tensor?): expected each to have its own "
             "memory, got shape {} with strides {}. clone() it first.",
             op.name(), schema_.arguments[i].name, tensor.shape(), to_string(tensor.strides()));
  }

  /// Returns whether `tensor` shares memory with an argument that the kernel writes, in which case
  /// the kernel must read a copy.
  bool changes_with_another(const Operator& op, const Tensor& tensor) const {
    bool shared = false;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!schema_.arguments[i].written) continue;
      each_defined_tensor(values_[i], [&](const Tensor& written) {
        shared |= structured::check_overlap(op, written, tensor) != structured::Sharing::kNone;
      });
    }
    return shared;
  }

  const Schema& schema_;
  std::span<const Value> values_;
  SmallVector<In, 6> ins_;
  SmallVector<PackedArgument, 8> packed_;
  SmallVector<Tensor, 2> copies_;
  SmallVector<Written, 2> written_;
};

void run_kernel(Preparation& preparation, std::span<const Value> arguments,
                SmallVector<Target, 2>& targets) {
  const Key backend = preparation.backend;
  const bool shapes_only = preparation.execution == Execution::kShapes;
  const bool has_kernel = preparation.op.root().packed_kernel(backend) != nullptr;
  if (!has_kernel && !shapes_only) preparation.op.throw_missing(backend);
  PackedArguments packed(preparation, arguments);
  if (!shapes_only) {
    SmallVector<const Out*, 4> outs;
    for (const Target& target : targets) outs.push_back(&target.out());
    structured::run_packed(preparation, outs, packed.get());
  }
  packed.finish(preparation);
  for (Target& target : targets) target.finish(preparation);
}

/// Pushes the results in schema order: new ones are moved out of `targets`, the others are written
/// arguments.
void push_results(const Operator& op, SmallVector<Target, 2>& targets, Stack& stack) {
  size_t next = 0;
  for (size_t i = 0; i < op.schema().returns.size(); ++i) {
    if (const int argument = op.schema().written_alias(i); argument >= 0) {
      const Value& value = stack.arguments()[static_cast<size_t>(argument)];
      stack.results().emplace_back(Value(value.tensor()));
    } else if (Tensor result = targets[next++].take(); result.defined()) {
      stack.results().emplace_back(std::move(result));
    } else {
      stack.results().emplace_back();
    }
  }
}

/// Returns whether `spec` is a floating result that the kernel computes in another floating dtype.
bool is_cast(const Outputs& outputs, const OutputSpec& spec) {
  return outputs.compute && spec.present && spec.dtype != *outputs.compute &&
         is_floating(spec.dtype) && is_floating(*outputs.compute);
}

/// Returns `spec` with the dtype that the kernel writes.
OutputSpec computed(const Outputs& outputs, const OutputSpec& spec) {
  OutputSpec result = spec;
  if (is_cast(outputs, spec)) result.dtype = *outputs.compute;
  return result;
}

/// The structured wrapper (shape rule, allocation, kernel) of the functional, in-place and out=
/// forms.
void structured_call(const Operator& op, KeySet keys, Stack& stack) {
  const Key backend = keys.highest();
  const Operator& root = op.root();
  const std::span<const Value> arguments =
      stack.arguments().first(root.schema().arguments.size());  // without out=
  const Outputs outputs = reinterpret_cast<BoxedRule>(op.definition())(root, arguments);
  const Device device = call_device(op, stack.arguments());
  Preparation preparation = structured::prepare(op, backend, device, outputs);
  SmallVector<Target, 2> targets;
  if (op.form() == OpForm::kFunctional) {
    targets.reserve(outputs.specs.size());
    for (const OutputSpec& spec : outputs.specs) {
      if (is_cast(outputs, spec)) {
        targets.emplace_back(preparation, computed(outputs, spec),
                             structured::allocate(spec, device), false, ReadBack::kNo);
      } else {
        targets.emplace_back(preparation, spec, device);
      }
    }
    run_kernel(preparation, arguments, targets);
  } else {
    const bool is_out = op.form() == OpForm::kOut;
    const Tensor& destination =
        stack.arguments()[is_out ? stack.arguments().size() - 1 : 0].tensor();
    targets.emplace_back(preparation, computed(outputs, outputs.specs[0]), destination, is_out,
                         read_back(preparation, destination, arguments));
    run_kernel(preparation, arguments, targets);
    destination.storage()->bump_version();
  }
  push_results(op, targets, stack);
}

AnyFunction any(BoxedKernel function) { return reinterpret_cast<AnyFunction>(function); }

}  // namespace

void run_dynamic_kernel(const Operator& op, Key backend, Strides strides,
                        std::span<const Value> arguments, void* data,
                        FunctionRef<void(const PackedCall&)> kernel) {
  Preparation preparation{
      op, backend, op.cell(backend).execution, call_device(op, arguments), std::nullopt,
      0,  strides};
  const PackedArguments packed(preparation, arguments);
  const KernelScope scope(preparation.device);
  structured::note_packed_launch(op, preparation.device, {}, packed.get());
  kernel({op, backend, preparation.device, {}, packed.get(), data});
  finish_launch(op);
}

SmallVector<size_t, 4> fresh_results(const Schema& schema) {
  SmallVector<size_t, 4> fresh;
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (schema.written_alias(i) < 0) fresh.push_back(i);
  }
  return fresh;
}

OpAdapters boxed_adapters(const Schema& schema) {
  OpAdapters adapters;
  adapters.missing = any(&missing);
  adapters.boxed = any(&boxed);
  adapters.direct = any(&body);
  adapters.structured = any(&structured_call);
  adapters.observed = any(&observed);
  adapters.traced = any(&traced);
  adapters.unbox = &unbox;
  adapters.kernel_type = &typeid(PackedKernel);
  adapters.functional_type = &typeid(BoxedKernel);
  for (const Argument& argument : schema.arguments) {
    adapters.argument_types.push_back(argument.type);
  }
  return adapters;
}

}  // namespace lockstep
