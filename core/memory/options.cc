#include "core/memory/options.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "core/base/parse_number.h"
#include "core/memory/units.h"

namespace lockstep {

namespace {

constexpr size_t kLargestInterval = 16;  // 2^16 MiB
constexpr int kMostDivisions = 1024;

bool read_bool(std::string_view text, bool& value) {
  value = text == "True" || text == "true";
  return value || text == "False" || text == "false";
}
const char* bool_text(bool value) { return value ? "True" : "False"; }

bool read_double(std::string_view text, double& value) {
  const auto read = parse_number<double>(text);
  value = read.value_or(0);
  return read.has_value();
}

/// Reads MiB, with decimals, so that every number of bytes has a text form.
bool read_mib(std::string_view text, size_t& bytes) {
  const auto read = parse_number<double>(text);
  if (!read || !(*read >= 0 && *read < 0x1p43)) return false;
  bytes = static_cast<size_t>(*read * kMiB);
  return true;
}
std::string mib_text(size_t bytes) { return fmt::format("{}", static_cast<double>(bytes) / kMiB); }

bool is_division(int value) {
  return value == 0 || (value > 0 && value <= kMostDivisions &&
                        std::has_single_bit(static_cast<unsigned>(value)));
}

/// Reads "[256:1,512:2,>:4]": an entry is for sizes below its number of MiB and above the entry
/// before.
bool read_intervals(std::string_view list, std::vector<int>& divisions) {
  divisions.clear();
  bool closed = false;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    const size_t colon = entry.find(':');
    if (closed || colon == std::string_view::npos) return false;
    const auto count = parse_number<int>(entry.substr(colon + 1));
    if (!count || !is_division(*count)) return false;
    if (entry.substr(0, colon) == ">") {
      divisions.push_back(*count);
      closed = true;
      continue;
    }
    const auto limit = parse_number<size_t>(entry.substr(0, colon));
    if (!limit || !std::has_single_bit(*limit)) return false;
    const size_t interval = static_cast<size_t>(std::countr_zero(*limit));
    if (interval < divisions.size()) return false;
    divisions.resize(interval + 1, *count);
  }
  if (!closed) divisions.push_back(0);
  return divisions.size() > 1 || closed;
}

bool read_divisions(std::string_view text, std::vector<int>& divisions) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    return read_intervals(text.substr(1, text.size() - 2), divisions);
  }
  const auto count = parse_number<int>(text);
  if (!count || !is_division(*count)) return false;
  divisions.assign(*count == 0 ? 0 : 1, *count);
  return true;
}

std::string divisions_text(const std::vector<int>& divisions) {
  if (divisions.empty()) return "0";
  if (divisions.size() == 1 && divisions[0] != 0) return fmt::format("{}", divisions[0]);
  std::string text = "[";
  const size_t last = divisions.size() - 1;
  for (size_t i = 0; i < last; ++i) {
    if (i + 1 == last || divisions[i] != divisions[i + 1]) {
      text += fmt::format("{}:{},", size_t{1} << i, divisions[i]);
    }
  }
  return text + fmt::format(">:{}]", divisions[last]);
}

bool are_divisions(const std::vector<int>& divisions) {
  return divisions.size() <= kLargestInterval + 2 && std::ranges::all_of(divisions, is_division);
}

struct Option {
  std::string_view key;
  std::string_view allowed;
  bool (*read)(std::string_view text, AllocatorOptions& options);
  std::string (*write)(const AllocatorOptions& options);
  bool (*valid)(const AllocatorOptions& options);
};

constexpr std::string_view kBools = "True or False";
using Text = std::string_view;
using Options = AllocatorOptions;

bool always(const Options&) { return true; }

constexpr auto kOptions = std::to_array<Option>({
    {"expandable_segments", kBools,
     [](Text text, Options& o) { return read_bool(text, o.expandable_segments); },
     [](const Options& o) { return std::string(bool_text(o.expandable_segments)); }, always},
    {"max_split_size_mb", "MiB, not below large_segment_size_mb, or \"unlimited\"",
     [](Text text, Options& o) {
       o.max_split_size = Options::kUnlimited;
       return text == "unlimited" || read_mib(text, o.max_split_size);
     },
     [](const Options& o) {
       return o.max_split_size == Options::kUnlimited ? "unlimited" : mib_text(o.max_split_size);
     },
     [](const Options& o) { return o.max_split_size >= o.large_segment_size; }},
    {"roundup_power2_divisions",
     "a power of two up to 1024 or 0, or a list such as [256:1,512:2,>:4] whose sizes are rising "
     "powers of two of MiB, up to 65536",
     [](Text text, Options& o) { return read_divisions(text, o.roundup_power2_divisions); },
     [](const Options& o) { return divisions_text(o.roundup_power2_divisions); },
     [](const Options& o) { return are_divisions(o.roundup_power2_divisions); }},
    {"garbage_collection_threshold", "a fraction of the budget below 1; 0 is off",
     [](Text text, Options& o) { return read_double(text, o.garbage_collection_threshold); },
     [](const Options& o) { return fmt::format("{}", o.garbage_collection_threshold); },
     [](const Options& o) {
       return o.garbage_collection_threshold >= 0 && o.garbage_collection_threshold < 1;
     }},
    {"per_process_memory_fraction", "a fraction of the device's memory above 0, at most 1",
     [](Text text, Options& o) { return read_double(text, o.per_process_memory_fraction); },
     [](const Options& o) { return fmt::format("{}", o.per_process_memory_fraction); },
     [](const Options& o) {
       return o.per_process_memory_fraction > 0 && o.per_process_memory_fraction <= 1;
     }},
    {"large_segment_size_mb", "MiB, at least 2 and at most 65536",
     [](Text text, Options& o) { return read_mib(text, o.large_segment_size); },
     [](const Options& o) { return mib_text(o.large_segment_size); },
     [](const Options& o) {
       return o.large_segment_size >= size_t{2} << 20 && o.large_segment_size <= size_t{64} << 30;
     }},
    {"stream_reuse", "wait or poll",
     [](Text text, Options& o) {
       o.stream_reuse = text == "poll" ? StreamReuse::kPoll : StreamReuse::kWait;
       return text == "poll" || text == "wait";
     },
     [](const Options& o) {
       return std::string(o.stream_reuse == StreamReuse::kPoll ? "poll" : "wait");
     },
     always},
    {"reserve_ratio", "a number from 1 to 16",
     [](Text text, Options& o) { return read_double(text, o.reserve_ratio); },
     [](const Options& o) { return fmt::format("{}", o.reserve_ratio); },
     [](const Options& o) { return o.reserve_ratio >= 1 && o.reserve_ratio <= 16; }},
    {"record_call_sites", kBools,
     [](Text text, Options& o) { return read_bool(text, o.record_call_sites); },
     [](const Options& o) { return std::string(bool_text(o.record_call_sites)); }, always},
    {"backend", "native, the only one", [](Text text, Options&) { return text == "native"; },
     [](const Options&) { return std::string("native"); }, always},
});

bool ignored_bool(Text text, Options&) {
  bool value = false;
  return read_bool(text, value);
}
bool ignored_number(Text text, Options&) { return parse_number<size_t>(text).has_value(); }

/// Keys for PyTorch's driver calls and pinned memory. Accepted, so that one text serves both
/// programs.
constexpr auto kIgnored = std::to_array<Option>({
    {"release_lock_on_cudamalloc", kBools, ignored_bool, nullptr, always},
    {"throw_on_cudamalloc_oom", kBools, ignored_bool, nullptr, always},
    {"graph_capture_record_stream_reuse", kBools, ignored_bool, nullptr, always},
    {"max_non_split_rounding_mb", "a whole number", ignored_number, nullptr, always},
    {"pinned_use_cuda_host_register", kBools, ignored_bool, nullptr, always},
    {"pinned_use_background_threads", kBools, ignored_bool, nullptr, always},
    {"pinned_free_catch_all", kBools, ignored_bool, nullptr, always},
    {"pinned_num_register_threads", "a whole number", ignored_number, nullptr, always},
    {"pinned_reserve_segment_size_mb", "a whole number", ignored_number, nullptr, always},
    {"pinned_max_round_threshold_mb", "a whole number", ignored_number, nullptr, always},
    {"pinned_max_cached_size_mb", "a whole number", ignored_number, nullptr, always},
});

const Option* find(std::string_view key) {
  for (const Option& option : kOptions) {
    if (option.key == key) return &option;
  }
  for (const Option& option : kIgnored) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

[[noreturn]] void refuse_key(std::string_view key, std::string_view source) {
  std::array<std::string_view, kOptions.size()> known;
  std::ranges::transform(kOptions, known.begin(), &Option::key);
  const auto near = nearest(key, known);
  throw ConfigError(fmt::format("[allocator] {}: unknown key \"{}\": expected one of {}.{}", source,
                                key, fmt::join(known, ", "),
                                near ? fmt::format(" Did you mean \"{}\"?", *near) : ""));
}

[[noreturn]] void refuse_value(const Option& option, std::string_view value,
                               std::string_view source) {
  throw ConfigError(fmt::format("[allocator] {}: {} cannot be \"{}\": expected {}.", source,
                                option.key, value, option.allowed));
}

/// Takes the next "key:value" off `text`; commas between brackets do not end it.
std::string_view take_entry(std::string_view& text) {
  size_t end = 0;
  for (int depth = 0; end < text.size() && (text[end] != ',' || depth > 0); ++end) {
    depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
  }
  const std::string_view entry = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return entry;
}

}  // namespace

void check_allocator_options(const AllocatorOptions& options, std::string_view source) {
  for (const Option& option : kOptions) {
    if (!option.valid(options)) refuse_value(option, option.write(options), source);
  }
}

AllocatorOptions parse_allocator_options(std::string_view text, std::string_view source,
                                         AllocatorOptions defaults) {
  std::string squeezed(text);
  std::erase_if(squeezed, [](unsigned char c) { return std::isspace(c) != 0; });
  AllocatorOptions options = std::move(defaults);
  std::string_view rest = squeezed;
  while (!rest.empty()) {
    const std::string_view entry = take_entry(rest);
    const size_t colon = entry.find(':');
    const std::string_view key = entry.substr(0, colon);
    LS_CHECK(colon != std::string_view::npos, ConfigError,
             "[allocator] {}: \"{}\" has no value: expected key:value,key:value.", source, entry);
    const Option* option = find(key);
    if (option == nullptr) refuse_key(key, source);
    const std::string_view value = entry.substr(colon + 1);
    if (!option->read(value, options)) refuse_value(*option, value, source);
  }
  check_allocator_options(options, source);
  return options;
}

AllocatorOptions default_allocator_options(DeviceType type) {
  AllocatorOptions options;
  if (type == DeviceType::kCUDA) options.reserve_ratio = 1.15;
  return options;
}

const AllocatorOptions& allocator_options_from_environment(DeviceType type) {
  // No lock, because a fork could happen while another thread holds it.
  static constinit std::array<std::atomic<const AllocatorOptions*>, kDeviceTypes> all_read{};
  std::atomic<const AllocatorOptions*>& read_before = all_read[static_cast<size_t>(type)];
  if (const AllocatorOptions* options = read_before.load(std::memory_order_acquire)) {
    return *options;
  }
  auto options = std::make_unique<AllocatorOptions>(default_allocator_options(type));
  for (const char* name :
       {"LOCKSTEP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    if (const char* text = std::getenv(name)) {
      *options = parse_allocator_options(text, name, *options);
      break;
    }
  }
  const AllocatorOptions* first = nullptr;
  if (read_before.compare_exchange_strong(first, options.get())) first = options.release();
  return *first;
}

std::string allocator_option_text(const AllocatorOptions& options, std::string_view key) {
  const auto option = std::ranges::find(kOptions, key, &Option::key);
  LS_ASSERT(option != kOptions.end());
  return option->write(options);
}

std::string to_string(const AllocatorOptions& options) {
  std::string text;
  for (const Option& option : kOptions) {
    if (option.key == "backend") continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", option.key, option.write(options));
  }
  return text;
}

}  // namespace lockstep
