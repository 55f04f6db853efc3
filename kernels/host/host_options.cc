#include "kernels/host/host_options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <optional>
#include <vector>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "core/base/parse_number.h"
#include "core/base/thread_pool.h"
#include "core/tensor/device.h"

namespace lockstep {

namespace {

template <class T>
bool read(std::string_view text, T& value) {
  const std::optional<T> found = parse_number<T>(text);
  if (found) value = *found;
  return found.has_value();
}

bool read_bytes(std::string_view text, double unit, size_t& bytes) {
  const std::optional<double> found = parse_number<double>(text);
  if (!found || !(*found >= 0 && *found * unit < 0x1p62)) return false;
  bytes = static_cast<size_t>(*found * unit);
  return true;
}

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

struct Option {
  std::string_view key;
  std::string_view allowed;
  bool (*read)(std::string_view text, HostOptions& options);
  bool (*valid)(const HostOptions& options);
};

constexpr std::array<Option, 8> kOptions = {{
    {"devices", "1 to 16",
     [](std::string_view text, HostOptions& options) { return read(text, options.devices); },
     [](const HostOptions& options) {
       return options.devices >= 1 && options.devices <= kMaxDevices;
     }},
    {"memory_mb", "a number above 0, or 0 for half of the machine's memory",
     [](std::string_view text, HostOptions& options) {
       return read_bytes(text, 0x1p20, options.memory_budget);
     },
     [](const HostOptions&) { return true; }},
    {"granule_kb", "a power of two of whole pages, at most 1048576, or 0 for none",
     [](std::string_view text, HostOptions& options) {
       return read_bytes(text, 0x1p10, options.granule);
     },
     [](const HostOptions& options) {
       const size_t granule = options.granule;
       return granule == 0 ||
              (std::has_single_bit(granule) && granule >= page() && granule <= size_t{1} << 30);
     }},
    {"kernel_threads", "1 to 4096",
     [](std::string_view text, HostOptions& options) { return read(text, options.kernel_threads); },
     [](const HostOptions& options) {
       return options.kernel_threads >= 1 && options.kernel_threads <= thread_pool::kMostParts;
     }},
    {"concurrent_kernels", "a number of kernels, or 0 for no limit",
     [](std::string_view text, HostOptions& options) {
       return read(text, options.concurrent_kernels);
     },
     [](const HostOptions& options) { return options.concurrent_kernels >= 0; }},
    {"copy_latency_us", "0 to 10000000",
     [](std::string_view text, HostOptions& options) {
       return read(text, options.copy_latency_us);
     },
     [](const HostOptions& options) {
       return options.copy_latency_us >= 0 && options.copy_latency_us <= 1e7;
     }},
    {"copy_gb_per_s", "a number above 0, or 0 for no limit",
     [](std::string_view text, HostOptions& options) {
       const bool good = read(text, options.copy_bandwidth);
       options.copy_bandwidth *= good ? 1e9 : 1;
       return good;
     },
     [](const HostOptions& options) {
       return options.copy_bandwidth == 0 || options.copy_bandwidth >= 1;
     }},
    {"call_stacks", "0 or 1",
     [](std::string_view text, HostOptions& options) {
       options.call_stacks = text == "1";
       return text == "0" || text == "1";
     },
     [](const HostOptions&) { return true; }},
}};

[[noreturn]] void throw_unknown(std::string_view key, std::string_view source) {
  std::vector<std::string_view> known;
  for (const Option& option : kOptions) known.push_back(option.key);
  const std::optional<std::string_view> meant = nearest(key, known);
  throw ConfigError(fmt::format("{}: there is no option \"{}\": expected one of {}.{}", source, key,
                                fmt::join(known, ", "),
                                meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

}  // namespace

void host::check(const HostOptions& options) {
  for (const Option& option : kOptions) {
    LS_CHECK(option.valid(options), ConfigError, "[host] option {} is out of range: expected {}.",
             option.key, option.allowed);
  }
}

HostOptions parse_host_options(std::string_view text, std::string_view source,
                               const HostOptions& defaults) {
  HostOptions options = defaults;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const size_t colon = entry.find(':');
    const std::string_view key = entry.substr(0, colon);
    const auto option = std::ranges::find(kOptions, key, &Option::key);
    if (option == kOptions.end()) throw_unknown(key, source);
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : entry.substr(colon + 1);
    LS_CHECK(option->read(value, options) && option->valid(options), ConfigError,
             "{}: {} cannot be \"{}\": expected {}.", source, key, value, option->allowed);
  }
  return options;
}

HostOptions host::options_from_environment() {
  const char* const text = std::getenv("LOCKSTEP_HOST");
  return text == nullptr ? HostOptions{} : parse_host_options(text, "LOCKSTEP_HOST");
}

size_t host::budget_of(const HostOptions& options) {
  if (options.memory_budget != 0) return options.memory_budget;
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page() / 2;
}

}  // namespace lockstep
