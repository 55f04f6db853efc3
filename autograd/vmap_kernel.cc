// The one kernel behind Key::kVmap. It sees every operator that has a batched argument, and, inside
// a function that vmap runs, every other one too, because that may draw random numbers.

#include <algorithm>

#include "autograd/batched_tensor.h"
#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/shape.h"
#include "core/tensor/generator.h"

namespace lockstep {

namespace {

constexpr size_t kNone = ~size_t{0};

bool is_batched_at(const Value& value, size_t depth) {
  bool any = false;
  each_defined_tensor(value, [&](const Tensor& t) { any |= find_batched(t, depth) != nullptr; });
  return any;
}

/// The innermost level at which an argument is batched, or kNone.
size_t innermost_depth(const Operator& op, std::span<const Value> arguments) {
  size_t depth = kNone;
  for (const Value& value : arguments) {
    each_defined_tensor(value, [&](const Tensor& tensor) {
      const Batched* batched = find_batched(tensor);
      if (batched == nullptr) return;
      check_level_runs(op.name(), *batched);
      depth = depth == kNone ? batched->depth : std::max(depth, batched->depth);
    });
  }
  return depth;
}

/// What the samples write into must be theirs.
void check_written(const Operator& op, std::span<const Value> values, size_t depth) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Argument& argument = op.schema().arguments[i];
    if (!argument.written) continue;
    LS_CHECK(!argument.keyword_only, AutogradError,
             "[{}] out= cannot be batched: expected no sample of a batch among the arguments. Use "
             "the form that returns a new tensor.",
             op.name());
    each_defined_tensor(values[i], [&](const Tensor& tensor) {
      LS_CHECK(find_batched(tensor, depth) != nullptr, AutogradError,
               "[{}] would write every sample of a batch into one tensor: {} is {}, which is not "
               "batched by the same vmap. Use the form that returns a new tensor, or make the "
               "destination from a batched tensor (zeros_like, clone).",
               op.name(), argument.name, to_string(tensor));
    });
  }
}

void check_kind(const Operator& op) {
  LS_CHECK(op.kind() != OpKind::kDynamic, AutogradError,
           "[{}] returns as many elements as the values ask for, which differ from sample to "
           "sample: expected an operator whose result has one shape. Use where, or call it outside "
           "of vmap.",
           op.name());
  LS_CHECK(op.kind() != OpKind::kHostValue, AutogradError,
           "[{}] returns one number, and under vmap a tensor stands for many samples: expected an "
           "operator that returns a tensor. Use where instead of a branch, or read the value "
           "outside of vmap.",
           op.name());
}

/// Whether the call runs the body of a composite, so that its inner operators can be batched.
bool runs_its_body(const Operator& op, KeySet below) {
  if (op.kind() != OpKind::kComposite || below.empty()) return false;
  const Key key = (below & KeySet::backends()).highest();
  return op.kernel(key) == nullptr && op.boxed_kernel(key) == nullptr;
}

/// The arguments of one call with the batches of one level in front.
class Unwrapped {
 public:
  /// With `all`, tensors that are not batched at `depth` are expanded over the batch.
  Unwrapped(std::span<const Value> arguments, size_t depth, bool all) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Value& value = arguments[i];
      const bool tensors = value.is_tensor() || value.is_tensor_list();
      if (!tensors || !(all || is_batched_at(value, depth))) {
        values_.push_back(value);
        continue;
      }
      LS_CHECK(i < 64, DispatchError, "[vmap] expected at most 64 arguments, got {}.",
               arguments.size());
      batched_ |= uint64_t{1} << i;
      if (value.is_tensor()) {
        values_.emplace_back(front(value.tensor(), depth));
        continue;
      }
      std::vector<Tensor> list;
      for (const Tensor& tensor : value.tensors()) {
        list.push_back(tensor.defined() ? front(tensor, depth) : Tensor());
      }
      values_.emplace_back(std::move(list));
    }
  }

  uint64_t batched() const { return batched_; }
  std::span<Value> values() { return {values_.data(), values_.size()}; }

 private:
  static Tensor front(const Tensor& tensor, size_t depth) {
    if (const Batched* batched = find_batched(tensor, depth)) {
      const OuterVmapsGuard outer(depth);
      return whole_in_front(*batched);
    }
    return expanded_in_front(tensor, depth);
  }

  uint64_t batched_ = 0;
  SmallVector<Value, 8> values_;
};

Tensor wrapped(const Operator& op, const Tensor& result, size_t depth) {
  const int64_t batch = vmap_levels()[depth].batch;
  LS_CHECK(result.dim() > 0 && result.size(0) == batch, DispatchError,
           "[{}] its batching rule returned {}: expected the batch of {} in front. Correct the "
           "rule; opcheck tests it.",
           op.name(), to_string(result), batch);
  return batched_tensor(result, 0, depth);
}

/// Converts the results on `inner`, which have the batch in front, to batched tensors on `stack`.
void give_results(const Operator& op, Stack& inner, size_t depth, Stack& stack) {
  if (op.alias_argument() >= 0) {
    const Tensor& self = stack.arguments()[static_cast<size_t>(op.alias_argument())].tensor();
    stack.results().emplace_back(self);
    return;
  }
  for (Value& result : inner.results()) {
    if (result.is_none()) {
      stack.results().emplace_back();
    } else if (result.is_tensor()) {
      stack.results().emplace_back(wrapped(op, result.take_tensor(), depth));
    } else if (result.is_tensor_list()) {
      std::vector<Tensor> list = result.take_tensors();
      for (Tensor& tensor : list) tensor = wrapped(op, tensor, depth);
      stack.results().emplace_back(std::move(list));
    } else {
      stack.results().push_back(std::move(result));
    }
  }
}

/// Copies the result of an in-place form into self if the rule returned a new tensor.
void store_in_place(const Operator& op, Stack& inner) {
  if (op.alias_argument() < 0 || inner.results().empty()) return;
  const Tensor& self = inner.arguments()[static_cast<size_t>(op.alias_argument())].tensor();
  const Tensor& result = inner.results()[0].tensor();
  const bool written = result.is_same(self) || (result.storage() == self.storage() &&
                                                result.storage_offset() == self.storage_offset());
  if (!written) copy_(self, result);
}

template <class F>
void call_unwrapped(const Operator& op, size_t depth, bool all, Stack& stack, F&& call) {
  Unwrapped arguments(stack.arguments(), depth, all);
  Stack inner(arguments.values());
  {
    const OuterVmapsGuard outer(depth);
    call(arguments.batched(), inner);
    store_in_place(op, inner);
  }
  give_results(op, inner, depth, stack);
}

/// Runs an in-place view operator (`t_`): changes the geometry of the sample and of its whole
/// batch.
void run_inplace_view(const Operator& op, BatchingRule rule, size_t depth, Stack& stack) {
  const Tensor& self = stack.arguments()[0].tensor();
  Unwrapped arguments(stack.arguments(), depth, false);
  Stack inner(arguments.values());
  {
    const OuterVmapsGuard outer(depth);
    rule(op.root(), arguments.batched(), inner);
  }
  set_whole(self, inner.results()[0].take_tensor());
  stack.results().emplace_back(self);
}

// --- random numbers ------------------------------------------------------------------------------

Generator& generator_of(const Operator& op, std::span<const Value> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema().arguments[i].type.base == BaseType::kGenerator && !arguments[i].is_none()) {
      return *arguments[i].to_generator();
    }
  }
  return default_generator();
}

/// Randomness::kSame: every sample draws with the same call number.
void draw_same(const Operator& op, size_t depth, Stack& stack) {
  bool any = false;
  for (const Value& value : stack.arguments()) any |= is_batched_at(value, depth);
  if (!any) {
    const OuterVmapsGuard outer(depth);
    return op.call_boxed(stack);
  }
  check_written(op, stack.arguments(), depth);
  call_unwrapped(op, depth, false, stack, [&](uint64_t batched, Stack& inner) {
    Generator& generator = generator_of(op, stack.arguments());
    const RandomKey state = generator.state();
    batching::each_sample(op, batched, inner, [&] { generator.set_state(state); });
  });
}

/// Randomness::kDifferent: one call draws for the whole batch. Factories get the batched size.
void draw_different(const Operator& op, size_t depth, Stack& stack) {
  const std::vector<Argument>& arguments = op.schema().arguments;
  const bool takes_tensors =
      std::any_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
        return argument.type.base == BaseType::kTensor && !argument.keyword_only;
      });
  const int64_t batch = vmap_levels()[depth].batch;
  check_written(op, stack.arguments(), depth);
  if (takes_tensors) {  // each element is drawn by itself
    return call_unwrapped(op, depth, true, stack, [&](uint64_t batched, Stack& inner) {
      batching::elementwise(op, batched, inner);
    });
  }
  const int size = op.schema().find("size");
  if (size >= 0) {
    SmallVector<Value, 8> values;
    for (const Value& value : stack.arguments()) values.push_back(value);
    Dims sizes{batch};
    const IntList given = values[static_cast<size_t>(size)].to_int_list();
    sizes.append(given.begin(), given.end());
    values[static_cast<size_t>(size)] = Value(IntList(sizes));
    Stack inner(std::span<Value>(values.data(), values.size()));
    {
      const OuterVmapsGuard outer(depth);
      op.call_boxed(inner);
    }
    return give_results(op, inner, depth, stack);
  }
  std::vector<Tensor> samples;
  Tensor whole;
  {
    const OuterVmapsGuard outer(depth);
    for (int64_t b = 0; b < batch; ++b) {
      Stack inner(stack.arguments());
      op.call_boxed(inner);
      samples.push_back(inner.results()[0].take_tensor());
    }
    whole = lockstep::stack(samples, 0);
  }
  stack.results().emplace_back(batched_tensor(whole, 0, depth));
}

/// Random operators belong to the innermost vmap, whatever their arguments.
void draw(const Operator& op, Stack& stack) {
  const size_t depth = vmap_levels().size() - 1;
  switch (vmap_levels()[depth].randomness) {
    case Randomness::kError:
      throw AutogradError(fmt::format(
          "[{}] draws random numbers in a function that vmap runs: it is not specified whether "
          "samples share them. Set VmapOptions::randomness to kSame or kDifferent.",
          op.name()));
    case Randomness::kSame:
      return draw_same(op, depth, stack);
    case Randomness::kDifferent:
      return draw_different(op, depth, stack);
  }
}

// -------------------------------------------------------------------------------------------------

void vmap_kernel(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys & KeySet::below(Key::kVmap);
  if (below.empty()) op.throw_missing(below);
  const size_t depth = innermost_depth(op, stack.arguments());
  if (!vmap_levels().empty() && op.draws_random_numbers()) return draw(op, stack);
  if (depth == kNone) return op.redispatch_boxed(below, stack);
  check_written(op, stack.arguments(), depth);
  check_kind(op);
  if (op.batching() == nullptr && runs_its_body(op, below)) {
    return op.redispatch_boxed(below, stack);
  }
  const BatchingRule rule = op.batching() != nullptr ? op.batching() : &batching::per_sample;
  if (op.kind() == OpKind::kView && op.form() == OpForm::kInPlace) {
    return run_inplace_view(op, rule, depth, stack);
  }
  call_unwrapped(op, depth, false, stack,
                 [&](uint64_t batched, Stack& inner) { rule(op, batched, inner); });
}

const Registration kVmapFallback =
    dispatcher().register_fallback(Key::kVmap, {&vmap_kernel, {__FILE__, __LINE__}});

}  // namespace

}  // namespace lockstep
