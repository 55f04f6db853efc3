#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a block that other streams use is waited for with, before its own stream may have it again.
enum class StreamReuse : uint8_t {
  kWait,  ///< the reusing stream waits on the device: which block is taken depends on calls alone
  kPoll,  ///< the block is passed over until its events are seen to be done, as in PyTorch
};

/// How a CachingAllocator behaves. Names, units and defaults are PyTorch's where it has the option,
/// save that expandable segments are the default here. docs/memory.md explains each.
struct AllocatorOptions {
  static constexpr size_t kUnlimited = ~size_t{0};

  bool expandable_segments = true;     ///< no effect where memory has no granules
  size_t max_split_size = kUnlimited;  ///< bytes; blocks at least this large are not split
  /// Steps between powers of two to which sizes are rounded up, by size class: element i is for
  /// sizes below 2^(20+i) bytes, the last for all larger ones. Empty, 0 or 1: sizes in 512 bytes.
  std::vector<int> roundup_power2_divisions;
  double garbage_collection_threshold = 0;       ///< fraction of the budget, in (0, 1); 0 is off
  double per_process_memory_fraction = 1;        ///< of the device's memory, in (0, 1]
  size_t large_segment_size = size_t{20} << 20;  ///< bytes, of plain segments
  StreamReuse stream_reuse = StreamReuse::kWait;
  /// Expandable: grow freely while what is reserved stays below this ratio to the highest sum of
  /// blocks on loan, plus 2 MiB; beyond it, memory is moved from holes first.
  double reserve_ratio = 1.02;
  bool record_call_sites = false;  ///< of large blocks, for the out-of-memory report

  friend bool operator==(const AllocatorOptions&, const AllocatorOptions&) = default;
};

/// Reads "key:value,key:value" in PyTorch's spelling (max_split_size_mb, expandable_segments,
/// roundup_power2_divisions:4 or :[256:1,512:2,>:4], ...) over `defaults`; of two equal keys the
/// later wins. Keys of PyTorch's that nothing here needs are checked and have no effect; those that
/// concern its other backends alone are errors. Throws ConfigError naming key and allowed values;
/// `source` says where the text comes from.
AllocatorOptions parse_allocator_options(std::string_view text, std::string_view source,
                                         AllocatorOptions defaults = {});
/// Throws ConfigError naming the first key whose value is out of range, and its allowed values.
void check_allocator_options(const AllocatorOptions& options, std::string_view source);
/// LOCKSTEP_ALLOC_CONF, else PYTORCH_CUDA_ALLOC_CONF, else PYTORCH_ALLOC_CONF, read once, over the
/// defaults. Throws ConfigError. Thread-safe.
const AllocatorOptions& allocator_options_from_environment();
/// The inverse of `parse_allocator_options`: all keys, in one line.
std::string to_string(const AllocatorOptions& options);
/// The value of one of its keys, as it stands there.
std::string allocator_option_text(const AllocatorOptions& options, std::string_view key);

}  // namespace lockstep
