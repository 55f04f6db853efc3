#include "nn/initial_values.h"

#include <utility>
#include <vector>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"

namespace lockstep::nn {

namespace {

/// Number of guards that are alive on this thread.
thread_local constinit int t_guards = 0;

/// Values of tensors that no module has registered yet.
std::vector<DeferredValues>& unregistered() {
  thread_local std::vector<DeferredValues> values;
  return values;
}

/// A tensor on default_device() with a storage that has no memory.
Tensor without_memory(IntList sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const auto bytes = static_cast<size_t>(count) * size_of(DType::kF32);
  auto storage = make_ref<Storage>(nullptr, bytes, default_device());
  storage->take_window_away(
      "[module] a parameter that was made under DeferValuesGuard has no values yet: expected "
      "Module::fill_parameter, or fully_shard, before its use.");
  return Tensor(make_ref<TensorImpl>(std::move(storage), sizes, count, DType::kF32));
}

}  // namespace

FillValues fill_with(double value) {
  return [value](const Tensor& into) { fill_(into, value); };
}

FillValues fill_uniform(double bound) {
  return [bound](const Tensor& into) { uniform_(into, -bound, bound); };
}

FillValues fill_normal(double deviation) {
  return [deviation](const Tensor& into) { normal_(into, 0.0, deviation); };
}

Tensor initial_values(IntList sizes, FillValues fill) {
  if (!defers_values()) {
    Tensor values = empty(sizes);
    fill(values);
    return values;
  }
  const RandomKey random = default_generator().state();
  fill(empty({1}));  // as many random calls as the values will take
  Tensor parameter = without_memory(sizes);
  unregistered().push_back({parameter, random, std::move(fill)});
  return parameter;
}

DeferValuesGuard::DeferValuesGuard() { ++t_guards; }
DeferValuesGuard::~DeferValuesGuard() {
  if (--t_guards == 0) unregistered().clear();
}

bool defers_values() { return t_guards > 0; }

DeferredValues take_deferred_values(const Tensor& parameter) {
  std::vector<DeferredValues>& values = unregistered();
  for (size_t i = values.size(); i-- > 0;) {
    if (!values[i].parameter.is_same(parameter)) continue;
    DeferredValues taken = std::move(values[i]);
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  }
  return {};
}

}  // namespace lockstep::nn
