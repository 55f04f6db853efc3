#include "core/device/arithmetic_facts.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>

#include <map>
#include <utility>

#include "core/base/mutex.h"

namespace lockstep {

namespace {

struct Registry {
  Mutex lock;
  std::map<std::string, std::string (*)()> values LS_GUARDED_BY(lock);
  std::map<DeviceType, std::map<std::string, std::string (*)(int)>> of_devices LS_GUARDED_BY(lock);
};

Registry& registry() {
  // Never destroyed: threads may ask for as long as the process lives.
  static auto* const facts = new Registry();
  return *facts;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

std::vector<ArithmeticFact> arithmetic_facts(Device device) {
  std::vector<ArithmeticFact> facts = {
      {"lockstep", LOCKSTEP_VERSION},
      {"compiler", compiler()},
      {"C library", fmt::format("glibc {}", gnu_get_libc_version())}};
  const MutexLock guard(registry().lock);
  for (const auto& [name, value] : registry().values) facts.push_back({name, value()});
  for (const auto& [name, value] : registry().of_devices[device.type]) {
    facts.push_back({name, value(device.index)});
  }
  return facts;
}

bool register_arithmetic_fact(std::string name, std::string (*value)()) {
  const MutexLock guard(registry().lock);
  registry().values[std::move(name)] = value;
  return true;
}

bool register_arithmetic_fact(DeviceType type, std::string name, std::string (*value)(int)) {
  const MutexLock guard(registry().lock);
  registry().of_devices[type][std::move(name)] = value;
  return true;
}

}  // namespace lockstep
