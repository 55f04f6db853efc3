#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace lockstep::launcher {

// Exit statuses of the program; docs and scripts rely on these numbers.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;  ///< errors without a specific status
inline constexpr int kUsage = 2;    ///< command line or config
inline constexpr int kData = 3;
inline constexpr int kCheckpoint = 4;
inline constexpr int kCommunication = 5;
inline constexpr int kOutOfMemory = 6;
inline constexpr int kNonFinite = 7;
inline constexpr int kSlowRank = 8;  ///< a rank was too slow; state saved: go on without it
inline constexpr int kStopped = 75;  ///< stopped on request, state saved: start again to resume

/// The status for an exception that ended the program.
int exit_code(const std::exception& error);

/// The status for an error of this class: 5 for "PeerLostError", 1 for a class that is not known.
int exit_code_of(std::string_view kind);

/// Name of the error's class for messages: "ConfigError", "OutOfMemoryError", ...
const char* error_kind(const std::exception& error);

/// The error as the program reports it: "ConfigError: [device] ...", after its place in a config if
/// it has one.
std::string error_text(const std::exception& error);

}  // namespace lockstep::launcher
