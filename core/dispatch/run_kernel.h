#pragma once

#include <array>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "core/device/kernel_scope.h"
#include "core/device/stream_sanitizer.h"
#include "core/dispatch/parameters.h"
#include "core/dispatch/queued_call.h"

namespace lockstep::structured {

/// Runs the packed kernel of the call's backend.
void run_packed(const Preparation& preparation, std::span<const Out* const> outs,
                std::span<const PackedArgument> arguments);
/// Copies elements with casts and any strides; both on `backend`.
void copy_elements(Key backend, const Tensor& destination, const Tensor& source);

/// Allocates and frees the kernel's workspace, so that it counts as memory that the call needs.
void count_workspace(const Preparation& preparation);

/// Queues a call on the current stream of `device`, which runs the cpu's kernels.
void queue(Device device, std::unique_ptr<QueuedKernel> kernel);

/// Queues a cpu kernel with its parameters. Not inlined, to keep the code of direct calls short.
template <class Kernel, class... P>
[[gnu::noinline, gnu::cold]] void queue_call(const Preparation& preparation, AnyFunction kernel,
                                             P... parameters) {
  queue(preparation.device, std::make_unique<QueuedCall<Kernel>>(
                                preparation.op, preparation.backend, preparation.device, kernel,
                                static_cast<P>(parameters)...));
}

/// The tensors among a kernel's parameters, for the stream sanitizer.
using Accesses = SmallVector<stream_sanitizer::KernelAccess, 8>;
/// Adds what one kernel parameter refers to: results are written, inputs read.
template <class P>
void add_access(Accesses& accesses, const P& parameter) {
  if constexpr (std::is_same_v<P, In> || std::is_same_v<P, Out>) {
    accesses.push_back({&parameter, std::is_same_v<P, Out>});
  } else if constexpr (std::is_same_v<P, InList> || std::is_same_v<P, OutList>) {
    for (const auto& each : parameter) add_access(accesses, each);
  }
}

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

/// Prepares the parameters and runs the kernel on `outs` as the backend's `Execution` says. A
/// backend that knows shapes only prepares the parameters as well: their copies are part of the
/// memory that a call needs.
template <class Kernel, class... A, size_t... O>
void run_kernel(Preparation& preparation, AnyFunction kernel, std::span<const Out* const> outs,
                std::index_sequence<O...>, Passed<A>... arguments) {
  const Execution execution = preparation.execution;
  if (execution == Execution::kMissing) [[unlikely]] {
    preparation.op.throw_missing(preparation.backend);
  }
  Parameters<std::index_sequence_for<A...>, A...> parameters(preparation, arguments...);
  if (execution == Execution::kShapes) {
    if (preparation.workspace_bytes != 0) count_workspace(preparation);
    return;
  }
  parameters.apply([&]<class... P>(P&&... each) {
    if (execution == Execution::kDirect) [[likely]] {
      return static_cast<void>(
          reinterpret_cast<Kernel*>(kernel)(*outs[O]..., static_cast<P&&>(each)...));
    }
    if (execution == Execution::kQueued) {
      return queue_call<Kernel, decltype(*outs[O])..., P...>(preparation, kernel, *outs[O]...,
                                                             static_cast<P&&>(each)...);
    }
    if (execution == Execution::kLaunched) {
      return launch_call<Kernel, decltype(*outs[O])..., P...>(preparation, kernel, *outs[O]...,
                                                              static_cast<P&&>(each)...);
    }
    const std::array<PackedArgument, sizeof...(P)> packed{PackedArgument(each)...};
    run_packed(preparation, outs, packed);
  });
}

}  // namespace lockstep::structured
