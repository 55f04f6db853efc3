#include "launcher/exit_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "configs/load.h"
#include "core/base/error.h"
#include "train/run/slow_rank.h"

namespace lockstep::launcher {

namespace {

/// Whether the system refused memory, a thread or a process.
bool is_refusal(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && (system->code() == std::errc::resource_unavailable_try_again ||
                               system->code() == std::errc::not_enough_memory);
}

}  // namespace

int exit_code(const std::exception& error) {
  const auto is = [&]<class T>(const T*) { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is(static_cast<const ConfigError*>(nullptr))) return kUsage;
  if (is(static_cast<const DataError*>(nullptr))) return kData;
  if (is(static_cast<const std::filesystem::filesystem_error*>(nullptr))) return kData;
  if (is(static_cast<const CheckpointError*>(nullptr))) return kCheckpoint;
  if (is(static_cast<const DistError*>(nullptr))) return kCommunication;
  if (is(static_cast<const OutOfMemoryError*>(nullptr))) return kOutOfMemory;
  if (is_refusal(error)) return kOutOfMemory;
  if (is(static_cast<const NonFiniteError*>(nullptr))) return kNonFinite;
  if (is(static_cast<const train::SlowRankError*>(nullptr))) return kSlowRank;
  return kFailure;
}

int exit_code_of(std::string_view kind) {
  static constexpr std::array<std::pair<std::string_view, int>, 12> kCodes = {{
      {"ConfigError", kUsage},
      {"DataError", kData},
      {"CheckpointError", kCheckpoint},
      {"DistError", kCommunication},
      {"BackendError", kCommunication},
      {"MismatchError", kCommunication},
      {"PeerLostError", kCommunication},
      {"TimeoutError", kCommunication},
      {"StoppedError", kCommunication},
      {"OutOfMemoryError", kOutOfMemory},
      {"NonFiniteError", kNonFinite},
      {"SlowRankError", kSlowRank},
  }};
  const auto found = std::ranges::find(kCodes, kind, &std::pair<std::string_view, int>::first);
  return found == kCodes.end() ? kFailure : found->second;
}

const char* error_kind(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return ours->kind();
  if (is_refusal(error)) return "OutOfMemoryError";
  if (exit_code(error) == kData) return "DataError";
  return "Error";
}

std::string error_text(const std::exception& error) {
  const char* kind = error_kind(error);
  if (const auto* at = dynamic_cast<const config::SourceError*>(&error)) {
    return fmt::format("{}: {}: {}", at->where(), kind, at->problem());
  }
  return fmt::format("{}: {}", kind, error.what());
}

}  // namespace lockstep::launcher
