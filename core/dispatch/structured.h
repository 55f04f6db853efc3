#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/base/current_scope.h"
#include "core/device/kernel_scope.h"
#include "core/device/stream_sanitizer.h"
#include "core/dispatch/adapters.h"
#include "core/dispatch/queued_call.h"

namespace lockstep {

/// The wrapper around every structured operator: from one shape rule and one kernel a backend it
/// makes the functional, in-place and out= forms and the meta kernel. It allocates results, casts
/// to the dtype the rule computes in, gives the kernel strides it can take, refuses overlapping
/// memory, and bumps version counters.
namespace structured {

/// State of one call while its kernel's parameters are made ready.
struct Preparation {
  const Operator& op;
  Key backend;
  Device device;  ///< where the kernel runs
  std::optional<DType> compute;
  uint64_t cast_mask;
  Strides strides;
  size_t ordinal = 0;  ///< of the next tensor argument
};

/// True when the kernel can read `impl` as it is.
bool acceptable(const Preparation& preparation, const TensorImpl& impl,
                std::optional<DType> compute);
/// A copy of `tensor` that the kernel can read. Counted as a hidden copy, except on meta, where
/// nothing is copied, and where a device option asked for another device.
Tensor converted(const Preparation& preparation, const Tensor& tensor, bool cast);

/// A fresh result. Its dtype is the spec's.
Tensor allocate(const OutputSpec& spec, Device device);

/// Whether a destination is also read.
enum class ReadBack : uint8_t {
  kNo,
  kSafe,    ///< yes, and the kernel reads an element before it writes the same one
  kHazard,  ///< yes, and the kernel may read after it wrote elsewhere: it needs a temporary
};

/// Where a kernel writes one result: the destination itself, or a temporary that `finish` copies
/// into it because dtype or strides do not suit the kernel.
class Target {
 public:
  /// For a functional form: allocates.
  Target(const Preparation& preparation, const OutputSpec& spec, Device device);
  /// For in-place and out= forms: checks sizes, dtype and overlap; `resizable` for out=.
  Target(const Preparation& preparation, const OutputSpec& spec, const Tensor& destination,
         bool resizable, ReadBack read_back);

  const Out& out() const { return out_; }
  Tensor take() { return std::move(result_); }
  void finish(const Preparation& preparation);

 private:
  void choose_place(const Preparation& preparation, DType dtype, ReadBack read_back);

  Tensor result_;
  Tensor temporary_;
  Out out_;
  bool shares_places_ = false;  ///< elements of the destination may lie in the same place
};

/// Whether each element along some dimension is the same one, as in an expanded tensor: such a
/// tensor is no destination. Others whose elements meet are, as in ATen; which of the results that
/// meet is kept is not specified.
bool repeats_elements(const TensorImpl& impl);

/// What a destination has in common with an input.
enum class Sharing : uint8_t {
  kNone,
  kAll,   ///< all elements, each with the one of the same index
  kSome,  ///< some bytes, or there are too many strides to tell
};
/// The rule is ATen's: two tensors without gaps whose memory is shared in part are a ShapeError.
/// Where one has gaps it is up to the caller, who gets what distinct memory would have given.
Sharing check_overlap(const Operator& op, const Tensor& destination, const Tensor& input);
inline Sharing check_overlap(const Operator& op, const Tensor& destination,
                             const OptionalTensor& input) {
  return input ? check_overlap(op, destination, *input) : Sharing::kNone;
}
inline Sharing check_overlap(const Operator& op, const Tensor& destination,
                             const TensorList& inputs) {
  Sharing found = Sharing::kNone;
  for (const Tensor& input : inputs) found = std::max(found, check_overlap(op, destination, input));
  return found;
}
inline Sharing check_overlap(const Operator& op, const Tensor& destination,
                             const OptionalTensorList& inputs) {
  Sharing found = Sharing::kNone;
  for (const Tensor& input : inputs) {
    found = std::max(found, check_overlap(op, destination, OptionalTensor(input)));
  }
  return found;
}
template <class T>
Sharing check_overlap(const Operator&, const Tensor&, const T&) {
  return Sharing::kNone;
}
/// What it means for a kernel that reads an input, `safe` when it reads each element of it before
/// it writes the one of the same index.
constexpr ReadBack read_back(Sharing sharing, bool safe) {
  if (sharing == Sharing::kNone) return ReadBack::kNo;
  return sharing == Sharing::kAll && safe ? ReadBack::kSafe : ReadBack::kHazard;
}

/// Checks the destination against all arguments. Kernels of operators with an in-place form may
/// be given their first argument as destination; element-wise ones any argument.
template <class... A>
ReadBack read_back(const Preparation& preparation, const Tensor& destination,
                   const A&... arguments) {
  const bool in_place = preparation.op.has_in_place();
  const bool elementwise = in_place && preparation.strides != Strides::kMatrix;
  ReadBack worst = ReadBack::kNo;
  size_t index = 0;
  (..., [&](const auto& argument) {
    const bool safe = elementwise || (in_place && index == 0);
    ++index;
    worst = std::max(worst, read_back(check_overlap(preparation.op, destination, argument), safe));
  }(arguments));
  return worst;
}

/// A number in the form of a tensor: it may meet tensors of any device, and is copied to theirs.
inline bool is_cpu_number(const TensorImpl& impl) {
  return impl.storage->device() == kCPU && impl.sizes.empty();
}

/// Which device the tensors of a call name: that of the first; numbers on the cpu count only where
/// there is nothing else.
class CallDevice {
 public:
  void see(const Tensor& tensor) {
    if (decisive_ == nullptr || is_cpu_number(*decisive_)) decisive_ = tensor.impl();
  }
  /// The thread's default where there was no tensor.
  Device get() const {
    return decisive_ != nullptr ? decisive_->storage->device() : default_device();
  }

 private:
  const TensorImpl* decisive_ = nullptr;
};
inline void find_device(CallDevice& found, const Tensor& tensor) { found.see(tensor); }
inline void find_device(CallDevice& found, const OptionalTensor& tensor) {
  if (tensor) found.see(*tensor);
}
inline void find_device(CallDevice& found, const TensorList& list) {
  for (const Tensor& tensor : list) found.see(tensor);
}
inline void find_device(CallDevice& found, const MutableTensorList& list) {
  find_device(found, static_cast<const TensorList&>(list));
}
inline void find_device(CallDevice& found, const OptionalTensorList& list) {
  for (const Tensor& tensor : list) find_device(found, OptionalTensor(tensor));
}
template <class T>
void find_device(CallDevice&, const T&) {}

[[noreturn]] void throw_other_device(const Operator& op, Device device, const Tensor& tensor);
/// Throws DeviceError unless `tensor`, which is elsewhere than the call, is a number on the cpu.
void check_other_device(const Operator& op, Device device, const Tensor& tensor);
/// Throws DeviceError when the tensors of a call are on different devices.
inline void check_same_device(const Operator& op, Device device, const Tensor& tensor) {
  if (tensor.impl()->storage->device() != device) [[unlikely]] {
    check_other_device(op, device, tensor);
  }
}
inline void check_same_device(const Operator& op, Device device, const OptionalTensor& tensor) {
  if (tensor) check_same_device(op, device, *tensor);
}
inline void check_same_device(const Operator& op, Device device, const TensorList& list) {
  for (const Tensor& tensor : list) check_same_device(op, device, tensor);
}
inline void check_same_device(const Operator& op, Device device, const MutableTensorList& list) {
  check_same_device(op, device, static_cast<const TensorList&>(list));
}
inline void check_same_device(const Operator& op, Device device, const OptionalTensorList& list) {
  for (const Tensor& tensor : list) check_same_device(op, device, OptionalTensor(tensor));
}
template <class T>
void check_same_device(const Operator&, Device, const T&) {}

/// The device results are made on: the device option, else that of the call's tensors.
template <class... A>
Device result_device(const Operator& op, const A&... arguments) {
  const Device* chosen = nullptr;
  (..., [&]<class T>(const T& argument) {
    if constexpr (detail::is_device_option<T>) {
      if (argument) chosen = &*argument;
    }
  }(arguments));
  if (chosen != nullptr) return *chosen;
  CallDevice found;
  (find_device(found, arguments), ...);
  const Device device = found.get();
  (..., [&]<class T>(const T& argument) { check_same_device(op, device, argument); }(arguments));
  return device;
}

/// How the wrapper hands an argument of type A on to its own parts: what is small is copied only
/// for the rule and for the kernel.
template <class A>
using Passed = const std::remove_reference_t<A>&;

/// Holds what one kernel parameter refers to.
template <class A>
struct Parameter {
  Passed<A> value;
  Parameter(Preparation&, Passed<A> argument) : value(argument) {}
  A get() { return static_cast<A>(value); }
};

struct TensorParameter {
  Tensor copy;
  In in;
  void set(Preparation& preparation, const Tensor& tensor) {
    const bool cast = (preparation.cast_mask >> preparation.ordinal) & 1;
    const std::optional<DType> compute = cast ? preparation.compute : std::nullopt;
    ++preparation.ordinal;
    if (acceptable(preparation, *tensor.impl(), compute)) [[likely]] {
      in.refer_to(*tensor.impl());
    } else {
      copy = converted(preparation, tensor, cast);
      in.refer_to(*copy.impl());
    }
  }
  const In& get() { return in; }
};
template <>
struct Parameter<const Tensor&> : TensorParameter {
  Parameter(Preparation& preparation, const Tensor& tensor) { set(preparation, tensor); }
};
template <>
struct Parameter<OptionalTensor> : TensorParameter {
  Parameter(Preparation& preparation, OptionalTensor tensor) {
    if (tensor) {
      set(preparation, *tensor);
    } else {
      ++preparation.ordinal;
    }
  }
};
template <>
struct Parameter<TensorList> {
  SmallVector<TensorParameter, 4> each;
  SmallVector<In, 8> ins;
  Parameter(Preparation& preparation, TensorList list) {
    const size_t ordinal = preparation.ordinal;
    each.reserve(list.size());
    for (const Tensor& tensor : list) {
      preparation.ordinal = ordinal;  // a list is one argument
      TensorParameter& slot = each.emplace_back();
      if (tensor.defined()) slot.set(preparation, tensor);
      ins.push_back(slot.in);
    }
    preparation.ordinal = ordinal + 1;
  }
  InList get() { return {ins.data(), ins.size()}; }
};
template <>
struct Parameter<OptionalTensorList> : Parameter<TensorList> {
  using Parameter<TensorList>::Parameter;
};
template <>
struct Parameter<MutableTensorList> {
  SmallVector<Out, 8> outs;
  Parameter(Preparation& preparation, MutableTensorList list) {
    ++preparation.ordinal;
    for (const Tensor& tensor : list) outs.emplace_back(*tensor.impl());
  }
  OutList get() { return {outs.data(), outs.size()}; }
};

inline void bump_written(const MutableTensorList& list) {
  for (const Tensor& tensor : list) tensor.storage()->bump_version();
}
template <class T>
void bump_written(const T&) {}

/// All parameters of a call, made in the order of the arguments, on which `ordinal` relies.
template <size_t I, class A>
struct IndexedParameter : Parameter<A> {
  using Parameter<A>::Parameter;
};
template <class Indices, class... A>
struct Parameters;
template <size_t... I, class... A>
struct Parameters<std::index_sequence<I...>, A...> : IndexedParameter<I, A>... {
  Parameters(Preparation& preparation, Passed<A>... arguments)
      : IndexedParameter<I, A>(preparation, arguments)... {}

  template <class F>
  void apply(F&& f) {
    f(static_cast<IndexedParameter<I, A>&>(*this).get()...);
  }
};

/// Runs the packed kernel of the call's backend.
void run_packed(const Preparation& preparation, std::span<const Out* const> outs,
                std::span<const PackedArgument> arguments);
/// Copies elements with casts and any strides; both on `backend`.
void copy_elements(Key backend, const Tensor& destination, const Tensor& source);

/// Hands a call over to the current stream of `device`, which has the cpu's kernels.
void queue(Device device, std::unique_ptr<QueuedKernel> kernel);

/// The same for a cpu kernel and what it is called with. Apart, so that the way of calls that are
/// not queued stays short.
template <class Kernel, class... P>
[[gnu::noinline, gnu::cold]] void queue_call(const Preparation& preparation, AnyFunction kernel,
                                             P... parameters) {
  queue(preparation.device, std::make_unique<QueuedCall<Kernel>>(
                                preparation.op, preparation.backend, preparation.device, kernel,
                                static_cast<P>(parameters)...));
}

/// The tensors that a kernel's parameters are.
using Accesses = SmallVector<stream_sanitizer::KernelAccess, 8>;
inline void add_access(Accesses& accesses, const In& in) { accesses.push_back({&in, false}); }
inline void add_access(Accesses& accesses, const Out& out) { accesses.push_back({&out, true}); }
inline void add_access(Accesses& accesses, const InList& list) {
  for (const In& in : list) add_access(accesses, in);
}
inline void add_access(Accesses& accesses, const OutList& list) {
  for (const Out& out : list) add_access(accesses, out);
}
template <class T>
void add_access(Accesses&, const T&) {}

/// Calls a kernel that launches its work on a stream of the call's device.
template <class Kernel, class... P>
[[gnu::noinline]] void launch_call(const Preparation& preparation, AnyFunction kernel,
                                   P... parameters) {
  const KernelScope scope(preparation.device);
  if (stream_sanitizer::enabled()) [[unlikely]] {
    Accesses accesses;
    (add_access(accesses, parameters), ...);
    stream_sanitizer::on_kernel(kernel_stream(), preparation.op,
                                {accesses.data(), accesses.size()});
  }
  reinterpret_cast<Kernel*>(kernel)(static_cast<P>(parameters)...);
  finish_launch(preparation.op);
}

/// Prepares the parameters and runs the kernel on `outs`; on the host device, queues it. On meta
/// the parameters are all: their copies are part of the memory that a call needs.
template <class Kernel, class... A, size_t... O>
void run_kernel(Preparation& preparation, AnyFunction kernel, std::span<const Out* const> outs,
                std::index_sequence<O...>, Passed<A>... arguments) {
  const bool is_meta = preparation.backend == Key::kMeta;
  if (kernel == nullptr && !is_meta &&
      preparation.op.root().packed_kernel(preparation.backend) == nullptr) [[unlikely]] {
    preparation.op.throw_missing(preparation.backend);
  }
  Parameters<std::index_sequence_for<A...>, A...> parameters(preparation, arguments...);
  if (is_meta) return;
  parameters.apply([&]<class... P>(P&&... each) {
    if (preparation.backend == Key::kHost) [[unlikely]] {
      return queue_call<Kernel, decltype(*outs[O])..., P...>(preparation, kernel, *outs[O]...,
                                                             static_cast<P&&>(each)...);
    }
    if (kernel == nullptr) [[unlikely]] {
      const std::array<PackedArgument, sizeof...(P)> packed{PackedArgument(each)...};
      return run_packed(preparation, outs, packed);
    }
    if (preparation.backend == Key::kCUDA) [[unlikely]] {
      return launch_call<Kernel, decltype(*outs[O])..., P...>(preparation, kernel, *outs[O]...,
                                                              static_cast<P&&>(each)...);
    }
    reinterpret_cast<Kernel*>(kernel)(*outs[O]..., static_cast<P&&>(each)...);
  });
}

template <class... A>
Preparation prepare(const Operator& op, Key backend, Device device, const Outputs& outputs) {
  // A call on meta reserves what it would on the cpu, so it asks for what that kernel reads.
  const Key kernel = backend == Key::kMeta ? Key::kCPU : backend;
  return {
      op, backend, device, outputs.compute, outputs.cast_mask, op.root().kernel_strides(kernel)};
}

template <class Signature>
struct Forms;

/// Results returned as a Tensor or as a tuple of them.
template <class R, size_t kCount, class... A>
struct FunctionalForm {
  static R call(const Operator& op, KeySet keys, A... arguments) {
    const OperatorScope scope(op);
    const Key backend = keys.highest();
    const Outputs outputs =
        reinterpret_cast<Outputs (*)(A...)>(op.definition())(static_cast<A>(arguments)...);
    const Device device = result_device(op, arguments...);
    constexpr std::make_index_sequence<kCount> indices;
    if (op.allocates_only()) return memory(outputs, device, indices);
    Preparation preparation = prepare(op, backend, device, outputs);
    return run(op, preparation, outputs, device, indices, arguments...);
  }

 private:
  template <size_t... O>
  static R memory(const Outputs& outputs, Device device, std::index_sequence<O...>) {
    return R{allocate(outputs.specs[O], device)...};
  }
  template <size_t... O>
  static R run(const Operator& op, Preparation& preparation, const Outputs& outputs, Device device,
               std::index_sequence<O...> indices, Passed<A>... arguments) {
    std::array<Target, kCount> targets{Target(preparation, outputs.specs[O], device)...};
    const std::array<const Out*, kCount> outs{&targets[O].out()...};
    using Kernel = typename StructuredKernel<R(A...)>::type;
    run_kernel<Kernel, A...>(preparation, op.root().kernel(preparation.backend), outs, indices,
                             arguments...);
    (targets[O].finish(preparation), ...);
    return R{targets[O].take()...};
  }
};

template <class... A>
struct Forms<Tensor(A...)> {
  using Functional = FunctionalForm<Tensor, 1, A...>;
  using Kernel = typename StructuredKernel<Tensor(A...)>::type;

  static const Tensor& write(const Operator& op, KeySet keys, const Tensor& destination,
                             bool resizable, Passed<A>... arguments) {
    const OperatorScope scope(op);
    const Key backend = keys.highest();
    const Outputs outputs =
        reinterpret_cast<Outputs (*)(A...)>(op.definition())(static_cast<A>(arguments)...);
    const Device device = result_device(op, destination, arguments...);
    if (destination.device() != device) [[unlikely]] {
      throw_other_device(op, device, destination);
    }
    Preparation preparation = prepare(op, backend, device, outputs);
    Target target(preparation, outputs.specs[0], destination, resizable,
                  read_back(preparation, destination, arguments...));
    const std::array<const Out*, 1> outs{&target.out()};
    run_kernel<Kernel, A...>(preparation, op.root().kernel(backend), outs, std::index_sequence<0>(),
                             arguments...);
    target.finish(preparation);
    destination.storage()->bump_version();
    return destination;
  }
};

template <class Signature>
struct InPlace;
/// The first argument is also the result.
template <class... Rest>
struct InPlace<Tensor(const Tensor&, Rest...)> {
  static const Tensor& call(const Operator& op, KeySet keys, const Tensor& self, Rest... rest) {
    return Forms<Tensor(const Tensor&, Rest...)>::write(op, keys, self, false, self, rest...);
  }
  using Signature = const Tensor&(const Tensor&, Rest...);
};

template <class Signature>
struct OutForm;
/// `out` comes last, as in ATen's schemas.
template <class... A>
struct OutForm<Tensor(A...)> {
  static const Tensor& call(const Operator& op, KeySet keys, A... arguments, const Tensor& out) {
    return Forms<Tensor(A...)>::write(op, keys, out, true, arguments...);
  }
  using Signature = const Tensor&(A..., const Tensor&);
};

template <class... R, class... A>
struct Forms<std::tuple<R...>(A...)> {
  using Functional = FunctionalForm<std::tuple<R...>, sizeof...(R), A...>;
};
/// No result: the operator writes into its `Tensor(a!)[]` arguments.
template <class... A>
struct Forms<void(A...)> {
  struct Functional {
    static void call(const Operator& op, KeySet keys, A... arguments) {
      const OperatorScope scope(op);
      const Key backend = keys.highest();
      const Outputs outputs =
          reinterpret_cast<Outputs (*)(A...)>(op.definition())(static_cast<A>(arguments)...);
      const Device device = result_device(op, arguments...);
      Preparation preparation = prepare(op, backend, device, outputs);
      using Kernel = typename StructuredKernel<void(A...)>::type;
      run_kernel<Kernel, A...>(preparation, op.root().kernel(backend), {}, std::index_sequence<>(),
                               arguments...);
      (bump_written(arguments), ...);
    }
  };
};

}  // namespace structured

/// Gives `self` itself another geometry; one that differs counts as a change in place.
void set_geometry(const Operator& op, const Tensor& self, const ViewSpec& spec);

/// View operators: the geometry function says where the result lies, the wrapper aliases.
/// Other signatures have no geometry function, and naming it is all that they can do.
template <class Signature>
struct ViewAdapters {
  struct Geometry;
};

template <class... A>
struct ViewAdapters<Tensor(const Tensor&, A...)> {
  using Geometry = ViewSpec (*)(const Tensor&, A...);
  static Tensor call(const Operator& op, KeySet, const Tensor& self, A... arguments) {
    ViewSpec spec = reinterpret_cast<Geometry>(op.definition())(self, static_cast<A>(arguments)...);
    const ViewOrigin origin = detail::thread_keys.excluded.has(Key::kAutograd)
                                  ? ViewOrigin::kNoGrad
                                  : ViewOrigin::kRecorded;
    return alias_moved(self, std::move(spec.sizes), std::move(spec.strides), spec.offset,
                       spec.dtype.value_or(self.dtype()), true, origin);
  }
  static const Tensor& call_in_place(const Operator& op, KeySet, const Tensor& self,
                                     A... arguments) {
    set_geometry(op, self,
                 reinterpret_cast<Geometry>(op.definition())(self, static_cast<A>(arguments)...));
    return self;
  }
};
template <class... A>
struct ViewAdapters<std::vector<Tensor>(const Tensor&, A...)> {
  using Geometry = std::vector<ViewSpec> (*)(const Tensor&, A...);
  static std::vector<Tensor> call(const Operator& op, KeySet, const Tensor& self, A... arguments) {
    std::vector<Tensor> views;
    for (const ViewSpec& spec :
         reinterpret_cast<Geometry>(op.definition())(self, static_cast<A>(arguments)...)) {
      views.push_back(alias_tensor(self, spec.sizes, spec.strides, spec.offset,
                                   spec.dtype.value_or(self.dtype()), true,
                                   ViewOrigin::kMultiOutput));
    }
    return views;
  }
};

}  // namespace lockstep
