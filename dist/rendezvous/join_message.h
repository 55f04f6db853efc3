#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

// What a process that wants to join a job says to the Door, and hears. The messages have the wire
// format of the store's. In this order, each of kHello, kSet and kJoin being answered:
//
//   process: kHello   kJoinProtocol, pid; kJoinMagic, job, secret, host
//   door:    kWelcome
//   process: kSet     what it is, and the text, for each JoinFact that is known before it builds
//   door:    kAnswer  what the process needs to know to build its model (DoorOptions::terms)
//   process: kJoin    where it listens; then its other facts
//   door:    kCheck   ranks that there are, most that there may be; every kJoinLook; where the door
//                     may open next, should the leader be lost
//   process: kCheck   without contents
//   door:    kSet     bytes that it is given before it is called (Door::give); any number of them
//   process: kAnswer  for each of those, once it has taken them, with the same id
//   door:    kPost    its number; what it needs to know to meet the ranks
//
// At any time the door may say kRefusal (StoreStatus; text) or kClosing (JoinEnd).

inline constexpr const char* kJoinMagic = "lockstep-join";
inline constexpr int64_t kJoinProtocol = 3;
/// How often the door and those who wait there look for each other.
inline constexpr std::chrono::milliseconds kJoinLook{500};
/// A host that does not answer for so long has vanished.
inline constexpr std::chrono::milliseconds kJoinSilence{10'000};

/// Something that must be alike on all ranks.
struct JoinFact {
  std::string what;  ///< "config"
  std::string text;
};

/// Why nobody can join any more.
enum class JoinEnd : int64_t { kFinished, kStopped, kFailed };

}  // namespace lockstep::dist
