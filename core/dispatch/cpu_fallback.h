#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/dispatch/dispatcher.h"

namespace lockstep {

/// Runs an operator on the cpu for a backend that has no kernel for it: copies the tensors there,
/// calls the cpu's kernel, and copies back the results and what was written. Register it with
/// `register_cpu_fallback`, or as one operator's boxed kernel.
///
/// In-place and out= forms write into the tensors of the call, also where they are views of each
/// other. Results are on the device that the call names, else on its tensors' device. Every copy
/// is counted as hidden (core/device/copies.h). Memory is copied with transfer_bytes
/// (core/device/transfer.h). On the host device, where the cpu can use the memory, only results are
/// copied: the fallback waits for the current stream (core/device/waits.h) and works in place.
/// Throws DeviceError when the tensors of the call are on different devices, and whatever the
/// operator throws on the cpu.
void cpu_fallback(const Operator& op, KeySet keys, Stack& stack);

/// Makes `cpu_fallback` run every operator that the backend at `key` has no kernel for, until the
/// registration is destroyed. Throws DispatchError when the key already has a fallback.
[[nodiscard]] Registration register_cpu_fallback(
    Key key, std::source_location where = std::source_location::current());

/// Number of calls that `cpu_fallback` ran in this process, by operator name. Thread-safe.
std::map<std::string, int64_t> cpu_fallback_calls();

}  // namespace lockstep
