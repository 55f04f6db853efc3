#include "core/tensor/device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <optional>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace lockstep {

namespace {

constexpr std::string_view kDeviceTypeNames[kDeviceTypes] = {
    "cpu", "host", "cuda", "meta", "private1", "private2", "private3", "private4"};

bool has_one_device(DeviceType type) {
  return type == DeviceType::kCPU || type == DeviceType::kMeta;
}

/// Names that backends gave to their slots.
struct GivenNames {
  Mutex mutex;
  std::array<std::string, kDeviceTypes> names LS_GUARDED_BY(mutex);
};
GivenNames& given_names() {
  static GivenNames* const instance = new GivenNames();  // leaked: used by static destructors
  return *instance;
}

constexpr uint32_t bit_of(DeviceType type) { return uint32_t{1} << static_cast<int>(type); }
constinit std::atomic<uint32_t> g_asynchronous =
    bit_of(DeviceType::kHost) | bit_of(DeviceType::kCUDA);

constinit std::array<std::atomic<int8_t>, kDeviceTypes> g_own_index{};

std::string name_of(DeviceType type) {
  const size_t i = static_cast<size_t>(type);
  GivenNames& given = given_names();
  const MutexLock lock(given.mutex);
  return given.names[i].empty() ? std::string(kDeviceTypeNames[i]) : given.names[i];
}

std::optional<DeviceType> type_of(std::string_view name) {
  GivenNames& given = given_names();
  const MutexLock lock(given.mutex);
  for (size_t i = 0; i < kDeviceTypes; ++i) {
    if (name == kDeviceTypeNames[i] || (!name.empty() && name == given.names[i])) {
      return static_cast<DeviceType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(Device device) {
  const std::string name = name_of(device.type);
  return has_one_device(device.type) ? name : fmt::format("{}:{}", name, device.index);
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::optional<DeviceType> type = type_of(text.substr(0, colon));
  bool good = type.has_value();
  int index = good ? g_own_index[static_cast<size_t>(*type)].load(std::memory_order_relaxed) : 0;
  if (good && colon != std::string_view::npos) {
    const char* last = text.data() + text.size();
    const auto [end, failure] = std::from_chars(text.data() + colon + 1, last, index);
    good = !has_one_device(*type) && failure == std::errc() && end == last && index >= 0 &&
           index < kMaxDevices;
  }
  LS_CHECK(good, DeviceError,
           "[device] unknown device \"{}\": expected cpu, meta, host:N or cuda:N.", text);
  return {*type, static_cast<int8_t>(index)};
}

void set_own_device(Device device) {
  LS_CHECK(device.index >= 0 &&
               (has_one_device(device.type) ? device.index == 0 : device.index < kMaxDevices),
           DeviceError, "[device] {} cannot be a process's own: expected a number below {}.",
           to_string(device), kMaxDevices);
  g_own_index[static_cast<size_t>(device.type)].store(device.index, std::memory_order_relaxed);
}

void name_device_type(DeviceType slot, std::string_view name) {
  LS_CHECK(slot >= DeviceType::kPrivate1, DeviceError,
           "[device] {} is no free slot: expected private1 to private4.", name_of(slot));
  const bool letters =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const std::optional<DeviceType> taken = type_of(name);
  LS_CHECK(letters && (!taken || *taken == slot), DeviceError,
           "[device] a backend cannot be called \"{}\": expected small letters and a name that is "
           "not taken.",
           name);
  GivenNames& given = given_names();
  const MutexLock lock(given.mutex);
  given.names[static_cast<size_t>(slot)] = name;
}

std::vector<std::string> given_device_names() {
  GivenNames& given = given_names();
  const MutexLock lock(given.mutex);
  std::vector<std::string> names;
  for (const std::string& name : given.names) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

bool is_asynchronous(DeviceType type) noexcept {
  return (g_asynchronous.load(std::memory_order_relaxed) & bit_of(type)) != 0;
}

void set_asynchronous(DeviceType slot, bool asynchronous) {
  LS_CHECK(slot >= DeviceType::kPrivate1, DeviceError,
           "[device] {} is no free slot: expected private1 to private4.", name_of(slot));
  asynchronous ? g_asynchronous.fetch_or(bit_of(slot)) : g_asynchronous.fetch_and(~bit_of(slot));
}

}  // namespace lockstep
