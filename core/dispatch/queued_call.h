#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/device/queued_kernel.h"
#include "core/dispatch/operator.h"
#include "core/dispatch/packed_kernel.h"
#include "core/tensor/shape.h"

namespace lockstep {

namespace detail {

/// Owned copy of a kernel parameter of type P, kept until the queued call runs. Not moved after
/// construction: `get()` may point into it.
template <class P>
struct Kept {
  P value;
  explicit Kept(P v) : value(v) {}
  P get() { return value; }
  template <class Visit>
  void visit(const Visit&) const {}
};

/// A tensor argument with its own copy of sizes and strides.
template <class T, bool kWritten>
struct KeptTensor {
  T tensor;
  Dims sizes;
  Dims strides;
  explicit KeptTensor(const T& t) : tensor(t) {
    if (!t.defined()) return;
    sizes.assign(t.sizes());
    strides.assign(t.strides());
    tensor.size_data = sizes.data();
    tensor.stride_data = strides.data();
  }
  KeptTensor(const KeptTensor&) = delete;
  KeptTensor& operator=(const KeptTensor&) = delete;
  const T& get() { return tensor; }
  template <class Visit>
  void visit(const Visit& visit) const {
    if (tensor.defined()) visit(tensor, kWritten);
  }
};
template <>
struct Kept<const In&> : KeptTensor<In, false> {
  using KeptTensor::KeptTensor;
};
template <>
struct Kept<const Out&> : KeptTensor<Out, true> {
  using KeptTensor::KeptTensor;
};

/// The tensors of a list, with a copy of all their sizes and strides in one array.
template <class T, bool kWritten>
struct KeptList {
  std::vector<T> tensors;
  std::vector<int64_t> geometry;
  explicit KeptList(std::span<const T> list) : tensors(list.begin(), list.end()) {
    size_t count = 0;
    for (const T& t : list) count += t.defined() ? 2 * static_cast<size_t>(t.rank) : 0;
    geometry.reserve(count);
    for (T& t : tensors) {
      if (!t.defined()) continue;
      t.size_data = append(t.sizes());
      t.stride_data = append(t.strides());
    }
  }
  KeptList(const KeptList&) = delete;
  KeptList& operator=(const KeptList&) = delete;
  std::span<const T> get() { return tensors; }
  template <class Visit>
  void visit(const Visit& visit) const {
    for (const T& t : tensors) {
      if (t.defined()) visit(t, kWritten);
    }
  }

 private:
  const int64_t* append(IntList list) {
    const int64_t* const start = geometry.data() + geometry.size();
    geometry.insert(geometry.end(), list.begin(), list.end());
    return start;
  }
};
template <>
struct Kept<InList> : KeptList<In, false> {
  using KeptList::KeptList;
};
template <>
struct Kept<OutList> : KeptList<Out, true> {
  using KeptList::KeptList;
};

/// Owned copy of a borrowed sequence.
template <class Borrowed, class Owned>
struct KeptSequence {
  Owned value;
  explicit KeptSequence(Borrowed v) : value(v.begin(), v.end()) {}
  Borrowed get() { return Borrowed(value); }
  template <class Visit>
  void visit(const Visit&) const {}
};
template <>
struct Kept<IntList> : KeptSequence<IntList, std::vector<int64_t>> {
  using KeptSequence::KeptSequence;
};
template <>
struct Kept<DoubleList> : KeptSequence<DoubleList, std::vector<double>> {
  using KeptSequence::KeptSequence;
};
template <>
struct Kept<std::string_view> : KeptSequence<std::string_view, std::string> {
  using KeptSequence::KeptSequence;
};
template <class T>
struct Kept<std::optional<T>> {
  std::optional<Kept<T>> value;
  explicit Kept(std::optional<T> v) {
    if (v) value.emplace(*v);
  }
  std::optional<T> get() { return value ? std::optional<T>(value->get()) : std::nullopt; }
  template <class Visit>
  void visit(const Visit&) const {}
};
/// Keeps nothing: the call's random numbers were reserved when it was queued
/// (QueuedKernel::random), and the kernel draws them from the worker's default generator.
template <>
struct Kept<Generator*> {
  explicit Kept(Generator*) {}
  Generator* get() { return nullptr; }
  template <class Visit>
  void visit(const Visit&) const {}
};

/// Sets `found` if `parameter` is a generator that the call names; otherwise the call uses the
/// thread's default generator.
template <class P>
void find_generator(Generator*& found, const P& parameter) {
  if constexpr (std::is_same_v<P, Generator*>) {
    if (parameter != nullptr) found = parameter;
  }
}

}  // namespace detail

/// A queued call of a cpu kernel of type void(P...), with its arguments. If `kernel` is null, the
/// operator's packed kernel for `backend` runs.
template <class Kernel>
class QueuedCall;

template <class... P>
class QueuedCall<void(P...)> final : public QueuedKernel {
 public:
  QueuedCall(const Operator& op, Key backend, Device device, AnyFunction kernel, P... parameters)
      : QueuedKernel(op),
        backend_(backend),
        device_(device),
        kernel_(kernel),
        kept_(static_cast<P>(parameters)...) {
    if (!op.draws_random_numbers()) return;
    Generator* generator = &default_generator();
    (detail::find_generator(generator, parameters), ...);
    set_random(generator->next_call());
  }

  void run() override {
    std::apply(
        [this](detail::Kept<P>&... each) {
          if (kernel_ == nullptr) [[unlikely]] {
            return run_packed(each...);
          }
          reinterpret_cast<void (*)(P...)>(kernel_)(each.get()...);
        },
        kept_);
  }

  void each_access(FunctionRef<void(const TensorArg&, bool)> visit) const override {
    std::apply([&](const detail::Kept<P>&... each) { (each.visit(visit), ...); }, kept_);
  }

 private:
  const Operator& op() const { return static_cast<const Operator&>(QueuedKernel::op()); }

  void run_packed(detail::Kept<P>&... each) {
    SmallVector<const Out*, 4> results;
    SmallVector<PackedArgument, 8> arguments;
    (..., [&](detail::Kept<P>& kept) {
      if constexpr (std::is_same_v<P, const Out&>) {
        results.push_back(&kept.get());
      } else {
        arguments.push_back(PackedArgument(kept.get()));
      }
    }(each));
    const Operator& root = op().root();
    root.packed_kernel(backend_)({op(),
                                  backend_,
                                  device_,
                                  {results.data(), results.size()},
                                  {arguments.data(), arguments.size()},
                                  root.kernel_data(backend_)});
  }

  Key backend_;
  Device device_;
  AnyFunction kernel_;
  std::tuple<detail::Kept<P>...> kept_;
};

}  // namespace lockstep
