#include "configs/memory_options.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "configs/memory.pb.h"

namespace lockstep::config {

AllocatorOptions allocator_options(const MemoryConfig& config, AllocatorOptions defaults) {
  std::string text;
  const auto set = [&](bool is_set, const char* key, const auto& value) {
    if (is_set) text += fmt::format("{}:{},", key, value);
  };
  set(config.has_expandable_segments(), "expandable_segments", config.expandable_segments());
  set(config.has_large_segment_size_mb(), "large_segment_size_mb", config.large_segment_size_mb());
  set(config.has_max_split_size_mb(), "max_split_size_mb",
      config.max_split_size_mb() == 0 ? "unlimited"
                                      : fmt::format("{}", config.max_split_size_mb()));
  set(config.has_roundup_power2_divisions(), "roundup_power2_divisions",
      config.roundup_power2_divisions());
  set(config.has_garbage_collection_threshold(), "garbage_collection_threshold",
      config.garbage_collection_threshold());
  set(config.has_per_process_memory_fraction(), "per_process_memory_fraction",
      config.per_process_memory_fraction());
  set(config.has_stream_reuse(), "stream_reuse",
      config.stream_reuse() == MemoryConfig::POLL ? "poll" : "wait");
  set(config.has_reserve_ratio(), "reserve_ratio", config.reserve_ratio());
  set(config.has_record_call_sites(), "record_call_sites", config.record_call_sites());
  return parse_allocator_options(text, "memory", std::move(defaults));
}

std::map<std::string, std::string> memory_fields(const AllocatorOptions& options) {
  std::map<std::string, std::string> fields;
  for (const char* key :
       {"expandable_segments", "max_split_size_mb", "roundup_power2_divisions",
        "garbage_collection_threshold", "per_process_memory_fraction", "large_segment_size_mb",
        "stream_reuse", "reserve_ratio", "record_call_sites"}) {
    fields[key] = allocator_option_text(options, key);
  }
  for (const char* key : {"expandable_segments", "record_call_sites"}) {
    fields[key] = fields[key] == "True" ? "true" : "false";
  }
  if (fields["max_split_size_mb"] == "unlimited") fields["max_split_size_mb"] = "0";
  fields["stream_reuse"] = fields["stream_reuse"] == "poll" ? "POLL" : "WAIT";
  return fields;
}

}  // namespace lockstep::config
