#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep {

/// How a block that other streams still use is reused on its own stream.
enum class StreamReuse : uint8_t {
  kWait,  ///< the reusing stream waits on the device: which block is taken depends on calls alone
  kPoll,  ///< skip the block until its events are reached, as PyTorch does
};

/// Options of a CachingAllocator. Names, units and defaults are PyTorch's where it has the option,
/// except that expandable segments are the default here. docs/memory.md explains each.
struct AllocatorOptions {
  static constexpr size_t kUnlimited = ~size_t{0};

  bool expandable_segments = true;     ///< no effect if the memory has no granules
  size_t max_split_size = kUnlimited;  ///< bytes; blocks at least this large are not split
  /// Steps between powers of two to which sizes are rounded up, by size class: element i is for
  /// sizes below 2^(20+i) bytes, the last for all larger ones. Empty, 0 or 1: round to
  /// DeviceMemory::block_unit.
  std::vector<int> roundup_power2_divisions = {};
  double garbage_collection_threshold = 0;       ///< fraction of the budget, in (0, 1); 0 is off
  double per_process_memory_fraction = 1;        ///< fraction of the device's memory, in (0, 1]
  size_t large_segment_size = size_t{20} << 20;  ///< bytes of a plain segment
  StreamReuse stream_reuse = StreamReuse::kWait;
  /// For expandable segments: memory is obtained freely while the reserved bytes stay below this
  /// ratio to the peak of live bytes, plus 2 MiB, or plus a granule if that is larger. Beyond it,
  /// granules are moved from holes first. `default_allocator_options` says what devices begin with.
  double reserve_ratio = 1.02;
  bool record_call_sites = false;  ///< record those of large blocks, for the out-of-memory report

  friend bool operator==(const AllocatorOptions&, const AllocatorOptions&) = default;
};

/// The options that the devices of a type begin with: the defaults above, but a reserve_ratio of
/// 1.15 on `cuda`, whose driver takes long to move granules and has memory to spare.
AllocatorOptions default_allocator_options(DeviceType type);

/// Parses "key:value,key:value" in PyTorch's spelling (max_split_size_mb, expandable_segments,
/// roundup_power2_divisions:4 or :[256:1,512:2,>:4], ...) over `defaults`. Of equal keys the last
/// one wins. PyTorch's keys that have no effect here are checked and ignored; keys that concern
/// only its other backends are errors. Throws ConfigError naming the key and the allowed values;
/// `source` names the origin of the text.
AllocatorOptions parse_allocator_options(std::string_view text, std::string_view source,
                                         AllocatorOptions defaults = {});
/// Throws ConfigError naming the first key whose value is out of range, and its allowed values.
void check_allocator_options(const AllocatorOptions& options, std::string_view source);
/// Options from LOCKSTEP_ALLOC_CONF, else PYTORCH_CUDA_ALLOC_CONF, else PYTORCH_ALLOC_CONF, over
/// the defaults of a type of device; read once. Throws ConfigError. Thread-safe.
const AllocatorOptions& allocator_options_from_environment(DeviceType type);
/// Inverse of `parse_allocator_options`: all keys, on one line.
std::string to_string(const AllocatorOptions& options);
/// The value of one key, as in `to_string`.
std::string allocator_option_text(const AllocatorOptions& options, std::string_view key);

}  // namespace lockstep
